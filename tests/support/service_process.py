"""The service as a process: started, observed from outside, signalled and stopped."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support import forked
from tests.support.real.process import Startable, free_ports
from tests.support.served import get

_START_BOUND_S: Final = 60.0
_END_BOUND_S: Final = 30.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Passes a listener on to a program as systemd does (sd_listen_fds).
_PASS_ON: Final = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)
# What no log may hold after a test in which nothing was wrong.
_WRONG: Final = re.compile(r'"level":"(?:error|critical)"|Traceback|Exception')


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a process uses, its children included: bytes of memory, file descriptors, threads."""

    memory: int
    descriptors: int
    threads: int


class Service(Startable):
    """One service on a port of its own; it can be started several times."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        *,
        options: tuple[str, ...] = (),
        descriptors: str = "",
        listener: socket.socket | None = None,
    ) -> None:
        """Nothing runs yet; its log, tokens and reports will be in the folder.

        The settings, without their prefix, come before those that the folder gives. `descriptors` is what `ulimit` is
        given for it; by default it has the limits of the test. A `listener` is passed on to it, and stays the caller's.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._passed = () if listener is None else (listener.fileno(),)
        self.port = free_ports(1)[0] if listener is None else listener.getsockname()[1]
        self.base = f"http://127.0.0.1:{self.port}"
        self.log = folder / "service.log"
        self.tokens = folder / "tokens.sqlite"
        self.reports = folder / "reports.sqlite"
        own = {"TOKEN_FILE": str(self.tokens), "REPORTS_FILE": str(self.reports), "DRAIN_SECONDS": "0"}
        self._environment = os.environ | {
            f"SHOP_DIRECTORY_{name}": value for name, value in {**own, **settings}.items()
        }
        limited = ["sh", "-c", f'ulimit {descriptors} && exec "$@"', "sh"] if descriptors else []
        passing = [sys.executable, "-c", _PASS_ON, *map(str, self._passed)] if self._passed else []
        serve = [sys.executable, "-m", "shop_directory", "serve", "--port", str(self.port)]
        self._command = [*limited, *passing, *serve, *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _begin(self) -> None:
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        with self.log.open("ab") as log:
            self._process = forked.start(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                pass_fds=self._passed,
            )  # fmt: skip

    def wait_until_ready(self) -> None:
        assert self._process is not None
        until = time.monotonic() + _START_BOUND_S
        while not self.is_ready():
            assert self._process.poll() is None, f"it died: {self.log.read_text()[-2_000:]}"
            assert time.monotonic() < until, f"it was not ready in time: {self.log.read_text()[-2_000:]}"
            time.sleep(0.05)

    def is_ready(self) -> bool:
        try:
            return get(self.base, "/ready").status == 200
        except OSError:
            return False

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def ended(self) -> int:
        """Wait for its end; returns its exit status."""
        assert self._process is not None
        return self._process.wait(_END_BOUND_S)

    def stop(self) -> None:
        if self._process is None or not self.is_running:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_BOUND_S)
        except subprocess.TimeoutExpired:
            for pid in (*self.workers(), self.pid):
                os.kill(pid, signal.SIGKILL)
            self._process.wait()

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="utf-8")
        return [int(pid) for pid in children.split()]

    def vitals(self) -> Vitals:
        pids = [self.pid, *self.workers()]
        memory = sum(int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) for pid in pids)
        descriptors = sum(_entries(f"/proc/{pid}/fd") for pid in pids)
        threads = sum(_entries(f"/proc/{pid}/task") for pid in pids)
        return Vitals(memory * _PAGE_BYTES, descriptors, threads)

    def wrong_lines(self) -> list[str]:
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return [line for line in text.splitlines() if _WRONG.search(line)]


def _entries(path: str) -> int:
    return sum(1 for _ in Path(path).iterdir())


# `with serving(...) as service`: it is ready within the block, and ended with it.
serving = Service
