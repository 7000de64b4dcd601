"""A shell in which the commands of a page run one after the other, as its reader would type them.

What one command exports, and where it changes to, holds for the next. A command that goes on, such as a server, is
started, waited for until it answers, and ended with the shell.
"""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

BOUND_S: Final = 120.0
_STATE: Final = "state"
# The state comes first, so that a command may use and change all of it; -a exports what it assigns.
_AROUND: Final = """set -eu
. "$HOME/state"
cd "$PAGE_FOLDER"
set -a
{command}
set +a
PAGE_FOLDER=$PWD
export -p > "$HOME/state"
"""
_CONTINUED: Final = re.compile(r"\\\n\s*")


class CommandFailedError(AssertionError):
    """A command of a page failed, or one that should go on has ended; the message shows what it said."""


@dataclass(slots=True)
class _Lasting:
    command: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def end(self) -> None:
        alive = self.process.poll() is None
        if alive:
            os.killpg(self.process.pid, signal.SIGINT)
            try:
                self.process.wait(BOUND_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                raise
        if not alive:
            raise CommandFailedError(f"{self.command!r} had ended by itself: {self.said}")


@dataclass(slots=True)
class Shell:
    """A shell with an environment of its own and nothing of this machine's user.

    Attributes:
        folder: where it begins; its home is next to it.
        home: holds its state, its curl's defaults (a status over 399 is a failure) and the logs of what goes on.
        environment: all that it knows at the beginning.
    """

    folder: Path
    home: Path
    environment: Mapping[str, str]
    _lasting: list[_Lasting] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / ".curlrc").write_text("silent\nshow-error\nfail-with-body\nmax-time = 30\n", encoding="utf-8")
        self.begin()
        return self

    def begin(self) -> None:
        given = {**self.environment, "HOME": str(self.home), "PAGE_FOLDER": str(self.folder)}
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in given.items())
        (self.home / _STATE).write_text("".join(lines), encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        self.end_lasting()

    def run(self, command: str) -> str:
        """Run a command to its end; returns what it printed."""
        done = subprocess.run(
            self._words(command), env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=BOUND_S, check=False
        )
        printed = done.stdout.decode("utf-8", "replace")
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace")
            raise CommandFailedError(f"{command!r} ended with {done.returncode}: {printed[-2_000:]}{said[-4_000:]}")
        return printed

    def start(self, command: str, ready: Callable[[], bool]) -> None:
        log = self.home / f"lasting-{len(list(self.home.glob('lasting-*')))}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                self._words(f"exec {command}" if " && " not in command else command),
                env={},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        lasting = _Lasting(command, process, log)
        self._lasting.append(lasting)
        deadline = time.monotonic() + BOUND_S
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                self._lasting.remove(lasting)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise CommandFailedError(f"{command!r} did not become ready: {lasting.said[-4_000:]}")
            time.sleep(0.1)

    def end_lasting(self) -> None:
        failures = []
        while self._lasting:
            try:
                self._lasting.pop().end()
            except (CommandFailedError, subprocess.TimeoutExpired) as failure:
                failures.append(str(failure))
        if failures:
            raise CommandFailedError("; ".join(failures))

    @property
    def said(self) -> str:
        return self._lasting[-1].said

    def variable(self, name: str) -> str:
        return self.run(f'printf %s "${{{name}-}}"')

    def _words(self, command: str) -> list[str]:
        script = _AROUND.format(command=command)
        return ["env", "-i", f"HOME={self.home}", "/bin/bash", "-c", script]


def commands(text: str) -> list[str]:
    """The commands of a block: its lines, those that go on behind a backslash or within quotes taken together."""
    found: list[str] = []
    open_lines = ""
    for line in text.splitlines():
        open_lines += line + "\n"
        try:
            words = shlex.split(_CONTINUED.sub(" ", open_lines), comments=True)
        except ValueError:
            continue
        if open_lines.endswith("\\\n"):
            continue
        if words:
            found.append(open_lines.strip())
        open_lines = ""
    assert not open_lines.strip(), f"a command without an end: {open_lines}"
    return found
