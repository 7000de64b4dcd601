"""Several workers: how they start slowly, share connections, and are replaced.

Nothing here depends on how busy the machine is.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.worlds import Location
from tests.support.callers import in_redis
from tests.support.served import get, until
from tests.support.service_process import Service, serving

WORKERS: Final = 4
CONNECTIONS: Final = 64
REQUEST: Final = b"GET /suggest?q=lam HTTP/1.1\r\nhost: a\r\n\r\n"
HEALTH: Final = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n"
# The state of /proc/net/tcp.
_ESTABLISHED: Final = "01"
# Longer than the ten seconds after which a worker that serves is killed.
_SLOW_START: Final = """
import os, time

os.register_at_fork(after_in_child=lambda: time.sleep(12))
"""
_SLOW_OPENING: Final = """
import asyncio, os

def slow_down():
    from shop_directory.search.embedded.engine import EmbeddedBackend

    snapshot = EmbeddedBackend.snapshot

    async def slow(self):
        await asyncio.sleep(2)
        EmbeddedBackend.snapshot = snapshot
        return await snapshot(self)

    EmbeddedBackend.snapshot = slow

os.register_at_fork(after_in_child=slow_down)
"""


@pytest.fixture
def settings(embedded: Location, redis_url: str) -> dict[str, str]:
    return {**embedded.settings(), **in_redis(redis_url, f"workers-{time.monotonic_ns()}")}


def started(service: Service, workers: int) -> None:
    """Until so many workers have started since the service was launched."""
    until(lambda: service.log.read_text("utf-8").count("Application startup complete"), lambda n: n >= workers, 40.0)


def opened_by(pid: int) -> list[str]:
    """What the file descriptors of a process are, without those that it closes now."""
    opened = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            opened.append(str(file.readlink()))
    return opened


def sockets_of(pid: int) -> set[str]:
    """The inodes of the sockets that a process has open."""
    return {name.removeprefix("socket:[").removesuffix("]") for name in opened_by(pid) if name.startswith("socket:")}


def connections_of(service: Service) -> list[int]:
    """How many connections of callers each worker has."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("utf-8").splitlines()[1:]]
    inodes = {row[9] for row in rows if row[3] == _ESTABLISHED and int(row[1].rpartition(":")[2], 16) == service.port}
    return [len(inodes & sockets_of(worker)) for worker in service.workers()]


@contextmanager
def connected(service: Service, number: int) -> Iterator[list[socket.socket]]:
    callers = [socket.create_connection(("127.0.0.1", service.port), timeout=20.0) for _ in range(number)]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.close()


def statuses(callers: list[socket.socket], request: bytes = REQUEST) -> set[bytes]:
    """One request over each connection, all at the same time."""
    for caller in callers:
        caller.sendall(request)
    return {caller.recv(65_536).split(b" ", 2)[1] for caller in callers}


def all_serve(service: Service, workers: int) -> None:
    """Until so many workers have started, and each of those that run has opened its index."""
    started(service, workers)

    def answers() -> set[bytes]:
        with connected(service, 4 * WORKERS) as callers:
            return statuses(callers)

    until(answers, lambda found: found == {b"200"}, 30.0)
    until(lambda: sum(connections_of(service)), lambda number: number == 0, 5.0)


def lines_of(service: Service, text: str) -> list[str]:
    return [line for line in service.log.read_text("utf-8").splitlines() if text in line]


@pytest.mark.slow
@pytest.mark.redis
def test_connections_are_spread_over_all_workers_also_after_one_is_replaced(
    settings: dict[str, str], tmp_path: Path
) -> None:
    with serving(tmp_path / "service", settings, options=("--workers", str(WORKERS))) as service:
        all_serve(service, WORKERS)
        mean = CONNECTIONS / WORKERS
        for _ in range(3):
            with connected(service, CONNECTIONS) as callers:
                assert statuses(callers) == {b"200"}
                spread = connections_of(service)
                assert (sum(spread), max(spread) <= 1.5 * mean) == (CONNECTIONS, True), spread
            until(lambda: sum(connections_of(service)), lambda number: number == 0, 5.0)
        with connected(service, CONNECTIONS // 2) as callers:
            assert statuses(callers) == {b"200"}
            killed = service.workers()[0]
            os.kill(killed, signal.SIGKILL)
            started(service, WORKERS + 1)
            with connected(service, CONNECTIONS // 2) as more:
                assert statuses(more, HEALTH) == {b"200"}
                spread = connections_of(service)
                assert max(spread) <= 1.5 * sum(spread) / WORKERS, spread
        (line,) = lines_of(service, "Another one starts")
        assert f"worker {killed} ended: killed by SIGKILL." in line


def libraries_of(pid: int) -> set[str]:
    """The compiled modules that a process has imported."""
    maps = Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()
    return {path for line in maps if (path := line.split()[-1]).endswith(".so") and "site-packages" in path}


@pytest.mark.redis
def test_workers_are_forked_from_a_process_that_has_one_thread_one_socket_and_their_modules(
    settings: dict[str, str], tmp_path: Path
) -> None:
    with serving(tmp_path / "service", settings, options=("--workers", "2")) as service:
        started(service, 2)
        assert len(list(Path(f"/proc/{service.pid}/task").iterdir())) == 1
        assert len(sockets_of(service.pid)) == 1
        others = [
            name
            for name in opened_by(service.pid)
            if not name.startswith(("socket:", "pipe:", "/dev/null", str(service.log)))
        ]
        assert others == []
        imported = libraries_of(service.pid)
        assert any("tantivy" in path for path in imported)
        assert [libraries_of(worker) - imported for worker in service.workers()] == [set(), set()]


@pytest.mark.slow
@pytest.mark.redis
def test_a_start_may_take_longer_than_a_worker_that_serves_may_hang(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes a quarter of a minute: each worker does nothing for twelve seconds."""
    (tmp_path / "sitecustomize.py").write_text(_SLOW_START)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with serving(tmp_path / "service", settings, options=("--workers", "2")) as service:
        started(service, 2)
        assert lines_of(service, "ended") + lines_of(service, "hangs") == []
        assert len(lines_of(service, "Application startup complete")) == 2


@pytest.mark.redis
def test_workers_accept_when_their_index_is_open(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_SLOW_OPENING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    service = Service(tmp_path / "service", settings, options=("--workers", "2"))
    service.launch()
    try:
        # From here on the supervisor listens, and clients wait for a worker.
        until(lambda: service.log.read_text("utf-8"), lambda text: "serves at" in text, 40.0)
        with connected(service, 16) as callers:
            assert statuses(callers) == {b"200"}
    finally:
        service.stop()


@pytest.mark.slow
@pytest.mark.redis
def test_a_worker_that_hangs_while_it_serves_is_replaced_and_the_log_says_why(
    settings: dict[str, str], tmp_path: Path
) -> None:
    """Takes a quarter of a minute: a worker may hang for ten seconds."""
    with serving(tmp_path / "service", settings, options=("--workers", "2")) as service:
        started(service, 2)
        hanging, other = service.workers()
        os.kill(hanging, signal.SIGSTOP)
        # New connections are the other worker's as soon as the first is known not to run.
        time.sleep(1.5)
        assert {get(service.base, "/health").status for _ in range(20)} == {200}
        started(service, 3)
        assert hanging not in service.workers()
        assert other in service.workers()
        assert len(lines_of(service, f"worker {hanging} hangs, for 10 s now: it is killed")) == 1
        assert len(lines_of(service, f"worker {hanging} ended: killed by SIGKILL. Another one starts")) == 1


@pytest.mark.redis
def test_workers_stop_when_their_supervisor_is_killed(settings: dict[str, str], tmp_path: Path) -> None:
    with serving(tmp_path / "service", settings, options=("--workers", "2")) as service:
        started(service, 2)
        workers = service.workers()
        os.kill(service.pid, signal.SIGKILL)
        service.ended()
        until(lambda: [pid for pid in workers if Path(f"/proc/{pid}/fd").exists()], lambda living: not living, 20.0)


@pytest.mark.redis
def test_workers_at_a_listener_of_systemd_lose_no_connection_when_the_service_is_restarted(
    settings: dict[str, str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        service = Service(tmp_path / "service", settings, options=("--workers", "2"), listener=held)
        with service:
            all_serve(service, 2)
            service.signal(signal.SIGTERM)
            assert service.ended() == 0
            with connected(service, 8) as waiting:
                for caller in waiting:
                    caller.sendall(HEALTH)
                service.start()
                assert {caller.recv(65_536).split(b" ", 2)[1] for caller in waiting} == {b"200"}
                assert sum(connections_of(service)) == 8
        assert service.wrong_lines() == []
