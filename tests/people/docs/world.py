"""The world of a page: a clone of the repository, and a shell in which its commands run one after the other."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Final, Self

import orjson

from tests.people.docs.pages import NOT_RUN, Block
from tests.rules.security.secret_scan import tracked
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE
from tests.support.served import get

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
    """A shell with an environment of its own and nothing of this machine's user, which begins in a folder.

    Its home, next to that, holds its state, its curl's defaults (a status over 399 is a failure) and the logs of what
    goes on.
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


HERE: Final = "localhost:8080"
CRONTAB: Final = "crontab"
# What `make` goes by: newer than the lock, they say that everything is installed.
_MADE: Final = (".run", ".dev")
# numba's cache; it is valid for the text of the source, wherever the source is.
_COMPILED: Final = "shop_directory/typeahead/kernel/__pycache__"
_GIT: Final = ("git", "-c", "user.name=tester", "-c", "user.email=tester@shop.example", "-c", "commit.gpgsign=false")
_SERVING: Final = re.compile(r"make run\b|shop-directory serve\b")
_FOLLOWING: Final = re.compile(r"shop-directory index follow\b")
_ROLLING_BACK: Final = re.compile(r"shop-directory index rollback --catalogue (\S+)")
_IDS: Final = re.compile(r"\bID( ID)*\b")
_COMMENT: Final = re.compile(r"\s+# .*$")
_CRON: Final = re.compile(r"^(?:[\d*/,-]+ +){5}(\S.*)\n$")
_APPLIED: Final = re.compile(r"[1-9]\d* changes applied")
_CHANGE: Final = {"op": "upsert", "type": "shops"}


def repository(folder: Path) -> Path:
    """A repository with all tracked files of this one as they are now, in one commit."""
    made = folder / "repository"
    copy_tracked(made)
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "All of it"]):
        subprocess.run([*_GIT, *words], cwd=made, capture_output=True, timeout=60, check=True)
    return made


def copy_tracked(root: Path) -> None:
    """Copy all tracked files as they are now to a folder that does not exist yet."""
    for name in tracked(REPOSITORY):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, root / name)


def install(clone: Path) -> None:
    """Give a clone what takes minutes to make: the programs of the tests, and the typeahead's compiled kernel."""
    own = clone / ".venv"
    own.mkdir()
    for part in Path(sys.prefix).iterdir():
        if part.name not in _MADE:
            (own / part.name).symlink_to(part)
    for name in _MADE:
        (own / name).touch()
    (clone / _COMPILED).mkdir(exist_ok=True)
    for part in (REPOSITORY / _COMPILED).glob("*.nb[ci]"):
        shutil.copy(part, clone / _COMPILED)


def sample_catalogue(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for path in SAMPLE.glob("*.ndjson"):
        shutil.copy(path, folder / path.name)
    return folder


@dataclass(slots=True)
class World:
    """Where the commands of a page run, with this port of the service instead of 8080, and with texts replaced.

    `printed` is what each command printed, by the command as it was written.
    """

    shell: Shell
    port: int
    stands_for: Mapping[str, str]
    printed: dict[str, str] = field(default_factory=dict)
    _named: list[str] = field(default_factory=list)

    def do(self, block: Block) -> None:
        """Run the commands of a block, one after the other, but for those that the list of what is not run names."""
        asked = [crontab_command(block.text)] if block.language == CRONTAB else commands(block.text)
        for command in asked:
            if not any(one.names(block.page, without_comment(command)) for one in NOT_RUN):
                self.do_one(command)
        if asked[-1].startswith("export SHOP_DIRECTORY_"):
            # The program takes these settings, or says which of them is wrong.
            self.shell.run("shop-directory config --json")

    def do_one(self, command: str) -> None:
        """Run one command; a server or a follower goes on."""
        here = self.here(without_comment(command))
        if _SERVING.search(here):
            self.shell.end_lasting()
            self.shell.start(here, self._serves)
        elif _FOLLOWING.search(here):
            self._follow(here)
        else:
            if back := _ROLLING_BACK.search(here):
                # There has to be a generation to go back to.
                self.shell.run(f"shop-directory index build --catalogue {back[1]}")
            self._remember(command, self.shell.run(here))
            if here.startswith("git clone"):
                install(Path(self.shell.variable("PAGE_FOLDER")))

    def here(self, command: str) -> str:
        for there, here in self.stands_for.items():
            command = command.replace(there, here)
        return _IDS.sub(lambda asked: " ".join(self._named[: len(asked[0].split())]), command)

    def _remember(self, command: str, printed: str) -> None:
        self.printed[without_comment(command)] = printed
        if re.search(r"token list|rechecks claim", command):
            self._named = [line.split()[0] for line in printed.splitlines() if line.strip()]

    def _serves(self) -> bool:
        try:
            return get(f"http://127.0.0.1:{self.port}", "/ready").status == 200
        except (OSError, HTTPException):
            return False

    def _follow(self, command: str) -> None:
        """Start it, and append changes to its catalogue until it says that it has applied one."""
        catalogue = Path(command.partition("--catalogue ")[2].split()[0])
        changes = Path(self.shell.variable("PAGE_FOLDER")) / catalogue / "changes.ndjson"
        (line, *_) = (SAMPLE / "shops.ndjson").read_bytes().splitlines()
        record = orjson.loads(line)

        def follows() -> bool:
            change = {**_CHANGE, "record": {**record, "version": time.time_ns()}}
            with changes.open("ab") as stream:
                stream.write(orjson.dumps(change) + b"\n")
            return _APPLIED.search(self.shell.said) is not None

        self.shell.start(command, follows)


def without_comment(command: str) -> str:
    """A command without the comment behind it, its lines joined as the shell joins them."""
    return _COMMENT.sub("", command) if "\n" not in command else command


def crontab_command(text: str) -> str:
    """The command of a crontab's one line, which has five fields of time before it."""
    found = _CRON.match(text)
    assert found is not None, f"no line of a crontab: {text}"
    return found[1]


def environment(clone: Path, port: int, **more: str) -> dict[str, str]:
    """What a shell of a page knows: programs, ports, and names of its own in servers that others use as well."""
    programs = f"{clone / '.venv' / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    ports = {"PORT": str(port), "SHOP_DIRECTORY_PORT": str(port)}
    # Where the OpenSearch of tests is built once on a machine, which takes a page that runs tests a minute.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {"PATH": programs, "LANG": os.environ.get("LANG", "C.UTF-8"), "XDG_CACHE_HOME": cache, **ports, **more}
