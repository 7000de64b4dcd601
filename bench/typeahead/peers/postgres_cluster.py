"""A PostgreSQL server on loopback with its data in a folder, configured for one core and an index that fits in memory.

PostgreSQL refuses to run as root, so root lends it an unprivileged user and lets that user through to the folder.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.typeahead.system import descendants
from tests.support.real.postgres import answers, as_unprivileged, unprivileged
from tests.support.real.postgres import make_cluster as initialise
from tests.support.real.process import ServerProcess, ending_with_input, free_ports

_START_BOUND_S: Final = 60.0
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


def make_cluster(programs: Path, data: Path) -> None:
    """Make an empty cluster in a folder that does not exist yet, with the `initdb` of another folder."""
    data.mkdir()
    if os.geteuid() == 0:
        owner = unprivileged()
        os.chown(data, owner.pw_uid, owner.pw_gid)
        _let_through(data)
    initialise(programs, data.resolve(), "--locale=C.UTF-8")


@contextmanager
def running_cluster(programs: Path, data: Path, log: Path) -> Iterator[tuple[str, ServerProcess]]:
    """A server on the cluster's data: how to connect to it, and its process."""
    (port,) = free_ports(1)
    stated = {**_SETTINGS, "port": str(port)}
    options = [word for name, value in stated.items() for word in ("-c", f"{name}={value}")]
    # An interrupt makes it end without waiting for its clients.
    server = ending_with_input([str(programs / "postgres"), "-D", str(data.resolve()), *options], signal.SIGINT)
    process = ServerProcess(f"PostgreSQL at port {port}", [*as_unprivileged(), *server], log)
    address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
    process.launch()
    try:
        process.wait_for(lambda: answers(address), "answering", _START_BOUND_S)
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
