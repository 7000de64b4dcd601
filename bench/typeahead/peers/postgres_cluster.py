"""A PostgreSQL server on loopback with its data in a folder, configured for one core and an index that fits in memory.

PostgreSQL refuses to run as root, so root lends it an unprivileged user and lets that user through to the folder.
"""

import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg

from bench.typeahead.system import descendants
from tests.support.real.process import ProcessError, ServerProcess, free_ports

_START_BOUND_S: Final = 60.0
_ANSWER_BOUND_S: Final = 2
_END_BOUND_S: Final = 5.0
_POLL_S: Final = 0.02
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "512MB",
    "effective_cache_size": "4GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "512MB",
    "random_page_cost": "1.1",
    "max_connections": "40",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
# PostgreSQL takes no notice of its standard input: the shell leaves a watcher of it behind and becomes PostgreSQL.
_END_WITH_INPUT: Final = 'exec 3<&0; (trap "" HUP; read -r _ <&3; kill -INT $$ 2>/dev/null) & exec "$@" 3<&- </dev/null'


def make_cluster(programs: Path, data: Path) -> None:
    """Make an empty cluster in a folder that does not exist yet, with the `initdb` of another folder.

    Raises:
        ProcessError: it could not be made.
    """
    data.mkdir()
    if os.geteuid() == 0:
        owner = _unprivileged()
        os.chown(data, owner.pw_uid, owner.pw_gid)
        _let_through(data)
    options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    command = [*_as_unprivileged(), str(programs / "initdb"), *options, "-D", str(data.resolve())]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=data)  # noqa: S603 - our own command
    if made.returncode != 0:
        raise ProcessError(f"initdb failed:\n{made.stdout}{made.stderr}")


@contextmanager
def running_cluster(programs: Path, data: Path, log: Path) -> Iterator[tuple[str, ServerProcess]]:
    """A server on the cluster's data: how to connect to it, and its process.

    Raises:
        ProcessError: it died, or did not answer in time.
    """
    (port,) = free_ports(1)
    stated = {**_SETTINGS, "port": str(port)}
    options = [word for name, value in stated.items() for word in ("-c", f"{name}={value}")]
    server = [
        *_as_unprivileged(),
        "sh",
        "-c",
        _END_WITH_INPUT,
        "sh",
        str(programs / "postgres"),
        "-D",
        str(data.resolve()),
    ]
    process = ServerProcess(f"PostgreSQL at port {port}", [*server, *options], log)
    address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    process.launch()
    try:
        process.wait_for(lambda: _answers(address), "answering", _START_BOUND_S)
        yield address, process
    finally:
        working = descendants((process.pid,)) if process.running else []
        process.signal(signal.SIGINT)  # without waiting for its clients
        process.stop()
        _wait_for_end(working)


def server_version(programs: Path) -> str:
    """Such as `PostgreSQL 17.2`."""
    command = [str(programs / "postgres"), "--version"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - as above
    return f"PostgreSQL {output.partition(') ')[2].split()[0]}"


def _answers(address: str) -> bool:
    try:
        psycopg.connect(address, connect_timeout=_ANSWER_BOUND_S).close()
    except psycopg.OperationalError:
        return False
    return True


def _wait_for_end(pids: Sequence[int]) -> None:
    """Wait for the process that watches standard input."""
    end = time.monotonic() + _END_BOUND_S
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
        time.sleep(_POLL_S)


def _let_through(folder: Path) -> None:
    """Open the way to a folder in the pop_rank for temporary files, which is made closed to others."""
    temporary = Path(tempfile.gettempdir()).resolve()
    for parent in folder.resolve().parents:
        if temporary in parent.parents and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)


def _unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _as_unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    user = _unprivileged()
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]
