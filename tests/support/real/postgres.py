"""Starts a real PostgreSQL as a process on loopback, with a cluster of its own that trusts every local user.

It refuses to run as root, so root lends it an unprivileged user; it ends when we do, and nothing of it is left.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psycopg

from tests.support.real.process import ProcessError, ServerProcess, Startable, ending_with_input, free_ports

START_BOUND_S: Final = 30.0
_ANSWER_BOUND_S: Final = 2
_LOOPBACK: Final = "127.0.0.1"
_DEBIAN_PLACES: Final = Path("/usr/lib/postgresql")
_QUICK: Final = {
    "listen_addresses": _LOOPBACK,
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "16MB",
    "max_connections": "30",
    "autovacuum": "off",
}


def find_postgres_programs(environment: Mapping[str, str]) -> Path | None:
    """Returns the folder of `initdb` and `postgres`: from the PATH, else the newest of Debian's; None without one."""
    if (found := shutil.which("initdb", path=environment.get("PATH"))) is not None:
        return Path(found).resolve().parent
    versions = [folder for folder in _DEBIAN_PLACES.glob("*/bin") if (folder / "initdb").is_file()]
    return max(versions, key=lambda folder: int(folder.parent.name.partition(".")[0]), default=None)


class PostgresServer(Startable):
    """One PostgreSQL; as a context it is made, started, answers, and is stopped and removed at the end."""

    def __init__(self, programs: Path) -> None:
        """Chooses a port and a folder; nothing runs yet. `programs` has `initdb` and `postgres`."""
        (self.port,) = free_ports(1)
        self.url = f"postgresql+psycopg://postgres@{_LOOPBACK}:{self.port}/postgres"
        # Not in pytest's folder: that is closed to the user that the server runs as.
        self.folder = Path(tempfile.mkdtemp(prefix="shop-directory-postgres-"))
        self._programs = programs
        stated = {**_QUICK, "port": str(self.port)}
        options = [word for name, value in stated.items() for word in ("-c", f"{name}={value}")]
        server = [str(programs / "postgres"), "-D", str(self._data), *options]
        # An interrupt makes it end without waiting for its clients.
        command = [*as_unprivileged(), *ending_with_input(server, signal.SIGINT)]
        self.process = ServerProcess(f"PostgreSQL at port {self.port}", command, self.folder / "postgres.log")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _begin(self) -> None:
        self._make_cluster()
        self.process.launch()
        self.process.wait_for(self.answers, "answering", START_BOUND_S)

    def stop(self) -> None:
        self.process.signal(signal.SIGINT)
        self.process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self) -> bool:
        return answers(f"host={_LOOPBACK} port={self.port} user=postgres dbname=postgres")

    def _make_cluster(self) -> None:
        if os.geteuid() == 0:
            owner = unprivileged()
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        make_cluster(self._programs, self._data, "--no-locale")


def make_cluster(programs: Path, data: Path, *options: str) -> None:
    """Makes an empty cluster with `initdb`, in a folder that its user may write."""
    usual = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"]
    command = [*as_unprivileged(), str(programs / "initdb"), *usual, *options, "-D", str(data)]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if made.returncode != 0:
        raise ProcessError(f"initdb failed:\n{made.stdout}{made.stderr}")


def answers(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=_ANSWER_BOUND_S).close()
    except psycopg.OperationalError:
        return False
    return True


def unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def as_unprivileged() -> list[str]:
    """Returns what a command begins with to run as that user; nothing for others than root."""
    if os.geteuid() != 0:
        return []
    user = unprivileged()
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]
