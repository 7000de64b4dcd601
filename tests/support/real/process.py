"""Runs one server as a child process on loopback, with a log file and the signals that tests of failure need.

Every wait is bounded, and a message about a process always names its log and shows its last lines.
"""

import fcntl
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

STOP_BOUND_S: Final = 30.0
_POLL_S: Final = 0.02
_LOG_TAIL: Final = 25
# Below those that Linux and macOS give to connections.
_PORTS: Final = range(20_000, 32_768)
_CHANCE: Final = random.SystemRandom()
_given: Final[set[int]] = set()


class ProcessError(Exception):
    """A server process did not start, died, or was not ready within its bound; the message shows its log's end."""


def free_ports(count: int) -> tuple[int, ...]:
    """Returns that many different loopback ports that nothing listens on, and that no process of these tests was given.

    Servers are stopped, and start again at their old address: no connection may have taken it by then.
    """
    ports = list[int]()
    while len(ports) < count:
        port = _CHANCE.choice(_PORTS)
        if port not in _given and _is_claimed(port) and _is_free(port):
            ports.append(port)
            _given.add(port)
    return tuple(ports)


def _is_claimed(port: int) -> bool:
    """Claims a port until this process ends; false if another process has it."""
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _claims() -> int:
    """The file in which a locked byte is a claimed port."""
    path = Path(tempfile.gettempdir()) / f"shop-directory-test-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


class Startable(ABC):
    """What runs from `start` to `stop`; as a context it runs within, and is stopped at the end."""

    def start(self) -> None:
        """Starts it and waits until it is usable; also after it was stopped or killed, then at its old address."""
        try:
            self._begin()
        except BaseException:
            self.stop()
            raise

    @abstractmethod
    def _begin(self) -> None:
        """Starts it and waits; what has begun is stopped where this fails."""

    @abstractmethod
    def stop(self) -> None:
        """Stops it; does nothing when it does not run."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


class Server(Startable):
    process: "ServerProcess"

    def stop(self) -> None:
        """Closes it in good order and waits for its end; does nothing when it does not run."""
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()


class ServerProcess:
    """A child process that can be stopped, killed, paused and started again with the same command.

    Its standard input is a pipe that we never write to: it ends when we do, however we end.
    """

    def __init__(self, title: str, command: Sequence[str], log: Path) -> None:
        """Stores what starts it; nothing runs yet. `log` is appended to by every start."""
        self.title = title
        self.log = log
        self._command = tuple(command)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it runs; true of a paused one too."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        if self._child is None or not self.running:
            raise ProcessError(self.describe("does not run"))
        return self._child.pid

    def launch(self) -> None:
        if self.running:
            raise ProcessError(self.describe("runs already"))
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            # In a group of its own an interrupt from the keyboard stays ours; and when we die while it is paused,
            # the kernel wakes it (an orphaned group with a stopped member gets SIGHUP and SIGCONT).
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.log.parent,  # where a crash leaves its files
                process_group=0,
            )

    def wait_for(self, ready: Callable[[], bool], what: str, bound_s: float) -> None:
        """Waits until `ready()`, at most so many seconds; `what` says in a failure what was waited for."""
        end = time.monotonic() + bound_s
        while not ready():
            if not self.running:
                raise ProcessError(self.describe(f"died before it was {what}"))
            if time.monotonic() > end:
                raise ProcessError(self.describe(f"was not {what} within {bound_s:g} s"))
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Ends it in good order, killing it after `STOP_BOUND_S`; does nothing when it does not run."""
        if self._child is None:
            return
        self.signal(signal.SIGCONT)  # a paused process would not see the next one
        self.signal(signal.SIGTERM)
        try:
            self._child.wait(STOP_BOUND_S)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
        self._reap()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._reap()

    def pause(self) -> None:
        """Freezes it (SIGSTOP): its port still takes connections, which are not answered."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)  # until its last thread has stopped, or it may still answer

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal; does nothing when it does not run."""
        if self._child is not None:
            self._child.send_signal(number)

    def describe(self, event: str) -> str:
        """Returns one message: the process, the event, its log's path and last lines."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.is_file() else ""
        lines = "\n".join(text.splitlines()[-_LOG_TAIL:])
        return f"{self.title} {event}; its log {self.log} ends:\n{lines}"

    def _reap(self) -> None:
        if self._child is not None:
            self._child.wait()
            if self._child.stdin is not None:
                self._child.stdin.close()
            self._child = None


def ending_with_input(command: Sequence[str], number: signal.Signals = signal.SIGTERM) -> list[str]:
    """A command of a server that takes no notice of its standard input, as one that ends with it.

    The shell leaves a watcher of the input behind and becomes the server. The watcher must outlive the hang-up that a
    paused server and it get when we die.
    """
    watch = f'trap "" HUP; read -r _ <&3; kill -{number.value} $$ 2>/dev/null'
    return ["sh", "-c", f'exec 3<&0; ({watch}) & exec "$@" 3<&- </dev/null', "sh", *command]
