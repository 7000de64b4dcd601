"""The nightly build as its unit and its line of a crontab start it: user, settings, umask, and a system without writes.

Nothing but systemd itself is missing. It needs root and a mount namespace.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from shop_directory.settings.commands import ExitCode
from tests.people.docs.pages import BY_PATH
from tests.people.one_server.proxies import FOLDER
from tests.support.catalogues import shop, write_catalogue

_USER: Final = 64_001
_TEMPORARY: Final = Path("/tmp")  # noqa: S108 - what PrivateTmp= replaces
_REPOSITORY: Final = FOLDER.parent
_SERVICE_USER: Final = 64_002
# What the service reads of an index.
_READ: Final = """
import asyncio, sys
from pathlib import Path
from index_mappings.embedded import from_stamp_json, pointed_to, pointer_path, stamp_path
from shop_directory.search.embedded.engine import TantivyEngine
from shop_directory.search.engine import SearchRequest
from shop_directory.search.plan import MATCH_ALL, Plan

async def read(root):
    engine = TantivyEngine(root)
    stamp = from_stamp_json(stamp_path(root, pointed_to(pointer_path(root).read_text())[0]).read_text())
    (page,) = await engine.search(stamp, (SearchRequest(Plan("shops", ((1, MATCH_ALL),)), 20, 0),))
    print(len(page.hits))
    await engine.close()

asyncio.run(read(Path(sys.argv[1])))
"""
_UNSHARE: Final = shutil.which("unshare")
_MAY_MOUNT: Final = (
    os.geteuid() == 0
    and _UNSHARE is not None
    and not subprocess.run([_UNSHARE, "--mount", "true"], check=False).returncode
)

pytestmark = pytest.mark.skipif(not _MAY_MOUNT, reason="only root can start the units' commands as another user")


def unit(name: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", (FOLDER / name).read_text(encoding="utf-8"), re.MULTILINE))


BUILD: Final = unit("shop-directory-build.service")


def _closed(path: Path) -> Path | None:
    """The outermost folder above a path that other users can't enter, or that PrivateTmp= replaces."""
    if _TEMPORARY in path.parents:
        return _TEMPORARY
    return next((one for one in reversed(path.parents) if not one.stat().st_mode & 0o001), None)


@dataclass(frozen=True)
class Server:
    """The places of a server, all below one folder."""

    root: Path

    def placed(self, text: str) -> str:
        """A text of the docs or of a unit, with the places of this server."""
        places = {
            "/opt/shop-directory/bin": f"{Path(sys.executable).parent}",
            "/etc/shop-directory": f"{self.root}/etc",
        }
        places |= {"/srv/shops": f"{self.root}/shops", "/var/": f"{self.root}/var/"}
        for place, other in places.items():
            text = text.replace(place, other)
        return text

    def run(self, command: str, environment: Mapping[str, str], user: int = _USER) -> subprocess.CompletedProcess[str]:
        """Run a command of the shell as the user; of the file system, only the unit's directories can be written."""
        as_user = f"setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs --bounding-set=-all"
        parts = [Path(sys.prefix), Path(sys.base_prefix), _REPOSITORY, self.root]
        lines = ["mount --make-rprivate /", "mount -t tmpfs tmpfs /mnt"]
        for number, part in enumerate(parts):
            lines += [f"mkdir /mnt/{number}", f"mount --rbind {shlex.quote(str(part))} /mnt/{number}"]
        for closed in {_TEMPORARY, *map(_closed, parts)} - {None}:
            lines.append(f"mount -t tmpfs -o mode={'1777' if closed == _TEMPORARY else '755'} tmpfs {closed}")
        for number, part in enumerate(parts):
            if _closed(part) is not None:
                lines += [f"mkdir -p {part}", f"mount --rbind /mnt/{number} {part}"]
        lines += [f"mount --bind {one} {one}" for one in (self.root / "var/lib/shop-indexer", self.root / "var/cache")]
        lines += [f"mount -o remount,bind,ro {one}" for one in ("/", self.root) if os.path.ismount(one) or one != "/"]
        lines.append(f"cd / && umask {BUILD['UMask']} && exec {as_user} sh -c {shlex.quote(command)}")
        stated = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", **environment}
        words = ["unshare", "--mount", "sh", "-ec", "\n".join(lines)]
        return subprocess.run(words, env=stated, capture_output=True, text=True, timeout=120, check=False)

    def night(self) -> subprocess.CompletedProcess[str]:
        """What the service of systemd does."""
        settings = self.placed(BUILD["EnvironmentFile"])
        lines = Path(settings).read_text(encoding="utf-8").splitlines()
        stated = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        name, _, value = self.placed(BUILD["Environment"]).partition("=")
        return self.run(self.placed(BUILD["ExecStart"]), {**stated, name: value})

    def catalogue(self, *shops: dict[str, Any]) -> None:
        """Write the catalogue, which the user alone can read."""
        shutil.rmtree(self.root / "shops", ignore_errors=True)
        write_catalogue(self.root / "shops" / "shops.ndjson", shops)
        shutil.chown(self.root / "shops", _USER)
        (self.root / "shops").chmod(0o700)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    server = Server(tmp_path)
    tmp_path.chmod(0o755)
    for name in ("var/lib/shop-indexer", "var/cache/shop-indexer", "etc"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("var/lib/shop-indexer", "var/cache/shop-indexer"):
        shutil.chown(tmp_path / name, _USER, _USER)
    settings = (FOLDER / "settings").read_text(encoding="utf-8")
    (tmp_path / "etc" / "settings").write_text(server.placed(settings), encoding="utf-8")
    server.catalogue(*(shop(f"Lamp {number}") for number in range(10)))
    return server


def test_a_night_builds_an_index_that_the_service_reads_and_a_state_that_only_the_indexer_does(server: Server) -> None:
    for public in (10, 10):
        done = server.night()
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["counts"]["shops"] == public
    lib = server.root / "var" / "lib" / "shop-indexer"
    command = shlex.join([sys.executable, "-c", _READ, str(lib / "index")])
    read = server.run(command, {}, _SERVICE_USER)
    assert (read.returncode, read.stdout) == (0, "10\n"), read.stderr
    assert (lib / "state").stat().st_mode & 0o077 == 0
    assert {path.stat().st_uid for path in lib.rglob("*")} == {_USER}


def _unreadable(server: Server) -> None:
    shutil.chown(server.root / "shops", 0)


def _unreadable_file(server: Server) -> None:
    shutil.chown(server.root / "shops" / "shops.ndjson", 0)
    (server.root / "shops" / "shops.ndjson").chmod(0o600)


def _foreign_directory(server: Server) -> None:
    shutil.chown(server.root / "var" / "lib" / "shop-indexer", 0, 0)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (_unreadable, "shops cannot be read: Permission denied"),
        (_unreadable_file, "shops.ndjson cannot be read: Permission denied"),
        (_foreign_directory, "cannot be used: Permission denied"),
    ],
)
def test_a_night_without_the_rights_to_its_files_says_so_and_is_not_tried_again(
    server: Server, failure: Callable[[Server], None], words: str
) -> None:
    failure(server)
    done = server.night()
    assert (done.returncode, words in f"{done.stdout}{done.stderr}") == (ExitCode.BAD_INPUT, True), done
    assert str(int(ExitCode.BAD_INPUT)) in BUILD["RestartPreventExitStatus"].split()


def test_the_message_of_a_failure_names_the_unit(server: Server) -> None:
    command = unit("shop-directory-failed@.service")["ExecStart"].replace("%i", "shop-directory-build.service")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        path = server.root / "log"
        journal.bind(str(path))
        path.chmod(0o666)
        done = server.run(command.replace("logger ", f"logger --socket {path} "), {})
        assert done.returncode == 0, done.stderr
        journal.settimeout(5)
        message = journal.recv(4_096).decode()
    # 26 is daemon.crit.
    assert message.startswith("<26>")
    said = "shop-directory-build.service has failed: journalctl --unit shop-directory-build.service says why"
    assert message.endswith(f"shop-directory: {said}")


def test_the_line_of_the_crontab_builds_too(server: Server) -> None:
    (block,) = [block.text for block in BY_PATH["docs/indexing.md"].blocks if "builds.jsonl" in block.text]
    when, command = block.strip().split("   ", 1)
    assert (when, "%" in command) == ("0 3 * * *", False)
    done = server.run(server.placed(command.strip()), {"HOME": "/nonexistent", "LOGNAME": "shop-indexer"})
    assert done.returncode == 0, done.stderr
    log = server.root / "var" / "lib" / "shop-indexer" / "builds.jsonl"
    assert json.loads(log.read_text(encoding="utf-8"))["published"] is True
    _unreadable(server)
    done = server.run(server.placed(command.strip()), {"HOME": "/nonexistent", "LOGNAME": "shop-indexer"})
    assert done.returncode == ExitCode.BAD_INPUT
