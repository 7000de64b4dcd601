"""One indexer job at a time: who holds the lease, who waits, and what the death of a holder lets happen (G4).

A hundred turns of twenty-five racers; SHOP_DIRECTORY_LEASE_TURNS=40 is the long form (a thousand turns).
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.sinks.embedded.lease import EmbeddedLease
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import Lease, LeaseHeldError, LeaseLostError
from tests.engines.integration.leases import LeaseLocation, held_by_us, opensearch_lease, race, reply_to
from tests.support.memory_sink import MemoryLease, MemoryLock

TURNS: Final = int(os.environ.get("SHOP_DIRECTORY_LEASE_TURNS", "4"))
THREADS: Final = 5
PROCESSES: Final = 4
AT_ONCE_S: Final = 1.0
PATIENCE_S: Final = 20.0

Ask = Callable[[], Lease]


@pytest.fixture
def embedded_lease_location(tmp_path: Path) -> LeaseLocation:
    return LeaseLocation("embedded", str(tmp_path / "var" / "index"))


@pytest.fixture
def opensearch_lease_location(opensearch_url: str) -> Iterator[LeaseLocation]:
    with opensearch_lease(opensearch_url) as location:
        yield location


_ENGINES: Final[list[Any]] = [
    "embedded_lease_location",
    pytest.param("opensearch_lease_location", marks=pytest.mark.opensearch),
]


@pytest.fixture(params=_ENGINES)
def location(request: pytest.FixtureRequest) -> LeaseLocation:
    found: LeaseLocation = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["memory", *_ENGINES])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Another asker for the same lease, of each engine and of the sink in memory."""
    if request.param == "memory":
        lock = MemoryLock()
        return lambda: MemoryLease(lock)
    found: LeaseLocation = request.getfixturevalue(request.param)
    return found.ask


def _kill(process: subprocess.Popen[str]) -> None:
    """End it as a power cut would, and leave what the system keeps of it until its parent asks."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.rule("G4")
def test_two_jobs_exclude_one_another_and_the_second_starts_after_the_first(ask: Ask) -> None:
    first, second = ask(), ask()
    first.acquire("build", 0)
    first.check()
    started = time.monotonic()
    with pytest.raises(LeaseHeldError, match=held_by_us("build")):
        second.acquire("prune", 0)
    assert time.monotonic() - started < AT_ONCE_S
    with pytest.raises(LeaseLostError):
        second.check()
    second.release()  # it holds nothing
    first.check()

    first.release()
    second.acquire("prune", 0)
    second.check()
    with pytest.raises(LeaseLostError):
        first.check()
    with pytest.raises(LeaseHeldError, match=held_by_us("prune")):
        first.acquire("build", 0)
    second.release()


@pytest.mark.rule("G4")
def test_a_job_that_holds_the_lease_cannot_take_it_again(ask: Ask) -> None:
    lease = ask()
    lease.acquire("follow", 0)
    with pytest.raises(LeaseHeldError, match=held_by_us("follow")):
        lease.acquire("verify", 0)
    lease.check()
    lease.release()
    lease.release()
    with pytest.raises(LeaseLostError):
        lease.check()


@pytest.mark.rule("G4")
def test_a_job_waits_as_long_as_it_may_and_starts_as_soon_as_the_other_ends(ask: Ask) -> None:
    first, second = ask(), ask()
    first.acquire("build", 0)
    started = time.monotonic()
    with pytest.raises(LeaseHeldError):
        second.acquire("rollback", 0.4)
    assert 0.4 <= time.monotonic() - started < 0.4 + AT_ONCE_S

    releasing = threading.Timer(0.4, first.release)
    started = time.monotonic()
    releasing.start()
    second.acquire("rollback", PATIENCE_S)
    assert 0.4 <= time.monotonic() - started < 0.4 + 2 * AT_ONCE_S
    second.check()
    releasing.join()
    second.release()


@pytest.mark.rule("G4")
def test_the_next_job_starts_immediately_after_one_is_killed(location: LeaseLocation) -> None:
    with location.holder() as process:
        assert reply_to(process, "check") == "held"
        lease = location.ask()
        with pytest.raises(LeaseHeldError, match=rf": build \(process {process.pid} on "):
            lease.acquire("build", 0)
        _kill(process)
        lease.acquire("build", 0)
        lease.check()
        lease.release()


@pytest.mark.rule("G4")
def test_a_paused_job_holds_the_lease_of_a_directory(embedded_lease_location: LeaseLocation) -> None:
    with embedded_lease_location.holder() as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(LeaseHeldError, match=rf"process {process.pid} on "):
            embedded_lease_location.ask().acquire("build", 0.3)
        process.send_signal(signal.SIGCONT)
        assert reply_to(process, "check") == "held"


@pytest.mark.rule("G4")
def test_of_many_racers_never_two_hold_the_lease_and_each_gets_its_turns(
    location: LeaseLocation, tmp_path: Path
) -> None:
    mark = tmp_path / "inside"
    words = (str(THREADS), str(TURNS), str(mark))
    others = [location.start("race", *words) for _ in range(PROCESSES)]
    clashes = [race(location, THREADS, TURNS, mark)]
    for other in others:
        with other:
            output, _ = other.communicate()
            clashes.append(int(output))
    assert clashes == [0] * (PROCESSES + 1)
    assert not mark.exists()


@pytest.mark.rule("G4")
def test_the_lock_of_a_directory_is_private_and_a_removed_one_is_a_lost_lease(tmp_path: Path) -> None:
    root = tmp_path / "var" / "index"
    path = root / "indexer.lock"
    first, second, third = (EmbeddedLease(root) for _ in range(3))
    first.acquire("build", 0)
    assert [entry.name for entry in root.iterdir()] == ["indexer.lock"]
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    with pytest.raises(LeaseLostError, match="was removed"):
        first.check()

    second.acquire("follow", 0)
    with pytest.raises(LeaseLostError, match="was removed"):
        first.check()
    first.release()
    second.check()
    with pytest.raises(LeaseHeldError, match=held_by_us("follow")):
        third.acquire("build", 0)
    second.release()
    assert path.read_bytes() == b""


@pytest.mark.rule("G4")
def test_a_directory_that_cannot_be_made_is_an_error_of_the_sink(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match=r"indexer\.lock cannot be opened: Not a directory") as raised:
        EmbeddedLease(tmp_path / "file" / "index").acquire("build", 5)
    assert type(raised.value) is SinkError
