"""The world of a page: a clone of the repository to stand in, a shell, and what its placeholders stand for.

Only names of locations change (a port, a folder, the address of a server); every command is the page's own.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Final

import orjson

from tests.people.docs.not_run import NOT_RUN
from tests.people.docs.pages import Block
from tests.people.docs.shell import Shell, commands
from tests.rules.security.secret_scan import tracked
from tests.support.real.sources import REPOSITORY
from tests.support.sample import SAMPLE
from tests.support.served import get

HERE: Final = "localhost:8080"
CRONTAB: Final = "crontab"
# What `make` goes by: newer than the lock, they say that everything is installed.
_MADE: Final = (".run", ".dev")
# numba's cache; it is valid for the text of the source, wherever the source is.
_COMPILED: Final = "service/search/typeahead/kernel/__pycache__"
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
    """Where the commands of a page run.

    Attributes:
        shell: runs them.
        port: of the service, instead of 8080.
        stands_for: the replacement of each text.
        printed: what each command printed, by the command as it was written.
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
