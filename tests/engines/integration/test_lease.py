"""One indexer job at a time: who holds the lease, who waits, and what the death or pause of a holder lets happen."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from indexer.jobs.build import prune
from indexer.sinks.embedded.sink import EmbeddedLease
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import Lease, LeaseHeldError, LeaseHolder, LeaseLostError, LeaseUnansweredError, holding
from indexer.sinks.opensearch.lease import LeaseDocument, OpenSearchLease
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.state.state import States
from tests.engines.integration.leases import LeaseLocation, held_by_us, opensearch_lease, race, reply_to
from tests.support.memory_sink import MemorySink
from tests.support.real.opensearch import OpenSearchNode
from tests.support.real.process import free_ports

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
        return MemorySink().lease
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


TTL_S: Final = 1.5


@pytest.fixture
def elsewhere(opensearch_url: str) -> Iterator[LeaseLocation]:
    """A prefix of its own in the session's OpenSearch, where a lease does not last long without renewal."""
    with opensearch_lease(opensearch_url, TTL_S) as found:
        yield found


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_paused_job_loses_its_lease_and_learns_of_it_before_it_writes(elsewhere: LeaseLocation) -> None:
    with elsewhere.holder() as process:
        process.send_signal(signal.SIGSTOP)
        successor, third = elsewhere.ask(), elsewhere.ask()
        started = time.monotonic()
        successor.acquire("follow", PATIENCE_S)
        assert TTL_S / 2 < time.monotonic() - started < 4 * TTL_S

        process.send_signal(signal.SIGCONT)
        assert reply_to(process, "check") == "lost"
        assert reply_to(process, "release") == "released"
        time.sleep(1.5 * TTL_S)  # longer than it would last without its renewals
        successor.check()
        with pytest.raises(LeaseHeldError, match=held_by_us("follow")):
            third.acquire("build", 0)
        successor.release()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_working_job_keeps_its_lease_however_long_others_wait(elsewhere: LeaseLocation) -> None:
    first, second = elsewhere.ask(), elsewhere.ask()
    first.acquire("follow", 0)
    with pytest.raises(LeaseHeldError, match=held_by_us("follow")):
        second.acquire("build", 2 * TTL_S)
    first.check()
    first.release()


def _elsewhere(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """A document of a holder on another machine, with a process number that does not exist here."""
    holder = replace(LeaseHolder.here("build"), host="elsewhere", pid=2**22 + 1, **fields)
    return LeaseDocument("a token", holder, 7, TTL_S).as_wire()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
@pytest.mark.parametrize(
    ("document", "named"),
    [
        (_elsewhere(machine="another boot pid:[1]"), r"build \(process 4194305 on elsewhere, since .*\)"),
        (_elsewhere(machine=None, started=None), r"build \(process 4194305 on elsewhere, since .*\)"),
        ({"somebody": "else's document"}, "an unknown one"),
    ],
    ids=["another machine", "an unnamed machine", "unreadable"],
)
def test_a_silent_holder_elsewhere_is_waited_for_until_its_time_is_over(
    elsewhere: LeaseLocation, client: OpenSearch, document: dict[str, Any], named: str
) -> None:
    with holding(elsewhere.ask(), "build", 0):
        pass  # makes the index
    client.index(index=f"{elsewhere.prefix}-lease", id="lease", body=document)
    lease, waiting = elsewhere.ask(), elsewhere.ask()
    started = time.monotonic()
    with pytest.raises(LeaseHeldError, match=f"^another job has the lease: {named}$"):
        lease.acquire("build", 0)
    with pytest.raises(LeaseHeldError):
        lease.acquire("build", TTL_S / 2)
    waiting.acquire("build", PATIENCE_S)
    assert TTL_S <= time.monotonic() - started < 4 * TTL_S
    waiting.check()
    waiting.release()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_who_tries_from_time_to_time_takes_over_as_well(elsewhere: LeaseLocation, client: OpenSearch) -> None:
    with holding(elsewhere.ask(), "build", 0):
        pass
    client.index(index=f"{elsewhere.prefix}-lease", id="lease", body=_elsewhere(machine="another boot pid:[1]"))
    lease = elsewhere.ask()
    with pytest.raises(LeaseHeldError):
        lease.acquire("follow", 0)
    time.sleep(TTL_S)
    lease.acquire("follow", 0)
    lease.check()
    lease.release()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_lease_whose_index_was_deleted_is_lost_and_the_next_one_is_safe_from_it(
    elsewhere: LeaseLocation, client: OpenSearch
) -> None:
    first, second, third = elsewhere.ask(), elsewhere.ask(), elsewhere.ask()
    first.acquire("build", 0)
    client.indices.delete(index=f"{elsewhere.prefix}-lease")
    second.acquire("follow", 0)  # the numbers begin again: both documents have the same
    time.sleep(TTL_S)
    with pytest.raises(LeaseLostError):
        first.check()
    first.release()
    second.check()
    with pytest.raises(LeaseHeldError, match=held_by_us("follow")):
        third.acquire("build", 0)
    second.release()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_lease_that_was_taken_by_a_request_without_an_answer_is_ours(
    elsewhere: LeaseLocation, client: OpenSearch
) -> None:
    lease = OpenSearchLease(client, elsewhere.prefix)
    written = LeaseDocument("our token", LeaseHolder.here("build"), 0, 15.0)
    assert lease._create(written)
    with pytest.raises(LeaseHeldError):
        lease._attempt("build", "another token")
    lease._attempt("build", "our token")
    lease.check()
    lease.release()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_the_index_of_the_lease_is_hidden_and_outlives_a_prune(
    elsewhere: LeaseLocation, client: OpenSearch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    prefix = elsewhere.prefix
    lease = elsewhere.ask()
    with holding(lease, "prune", 0):
        assert dict(client.indices.get(index=f"{prefix}-*")) == {}
        assert client.cat.indices(index=f"{prefix}-*", format="json") == []
        assert client.search(index=f"{prefix}-*")["hits"]["hits"] == []
        sink = OpenSearchSink([elsewhere.target], prefix)
        assert prune(sink, States(tmp_path, sink.location), datetime.now(UTC)) == ()
        sink.close()
        lease.check()
        (found,) = client.indices.get(index=f"{prefix}-lease").values()
        settings = found["settings"]["index"]
        assert (settings["number_of_shards"], settings["auto_expand_replicas"], settings["hidden"]) == (
            "1",
            "0-1",
            "true",
        )
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []


@pytest.mark.rule("G4")
@pytest.mark.parametrize(("wait", "ttl", "bound_s"), [(0, 15.0, 2.0), (0.5, 15.0, 3.0), (600, 0.5, 5.0)])
def test_an_engine_that_is_not_there_is_an_error_in_time_and_without_its_address(
    wait: float, ttl: float, bound_s: float
) -> None:
    (port,) = free_ports(1)
    with OpenSearch([f"http://operator:secret@127.0.0.1:{port}"]) as client:
        lease = OpenSearchLease(client, "test", ttl)
        started = time.monotonic()
        with pytest.raises(SinkError) as raised:
            lease.acquire("build", wait)
        assert time.monotonic() - started < bound_s
        assert str(raised.value) == "the engine does not answer for the lease: ConnectionError"
        with pytest.raises(LeaseLostError):
            lease.check()
        lease.release()


@pytest.mark.slow
@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_short_silence_of_the_engine_is_survived_and_a_long_one_loses_the_lease(spare_node: OpenSearchNode) -> None:
    ttl, node = 3.0, spare_node
    with OpenSearch([node.url]) as client:
        with holding(OpenSearchLease(client, "test"), "build", PATIENCE_S):
            pass  # makes the index: a node that has just started is slow
        lease, other = OpenSearchLease(client, "test", ttl), OpenSearchLease(client, "test", ttl)
        lease.acquire("build", 0)
        node.pause()
        time.sleep(0.4 * ttl)  # a renewal has begun, and has had no answer
        lease.check()
        node.resume()
        time.sleep(0.5 * ttl)
        lease.check()

        node.pause()
        time.sleep(0.7 * ttl)
        for fail in (lease.check, lambda: other.acquire("prune", 0), lambda: other.acquire("prune", 0.5)):
            started = time.monotonic()
            with pytest.raises((LeaseLostError, LeaseUnansweredError)):
                fail()
            assert time.monotonic() - started < 2 * ttl
        node.resume()
        node.wait_until_green()
        with pytest.raises(LeaseLostError):
            lease.check()  # lost is lost
        lease.release()
        other.acquire("prune", 0)
        node.kill()
        other.release()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_full_disk_is_named_where_the_lease_cannot_be_written(elsewhere: LeaseLocation, client: OpenSearch) -> None:
    with holding(elsewhere.ask(), "follow", 0):
        pass  # makes the index
    index, block = f"{elsewhere.prefix}-lease", "index.blocks.read_only_allow_delete"
    client.indices.put_settings(index=index, body={block: True})
    try:
        with pytest.raises(SinkError, match="does not answer for the lease: its indices are read-only, as on"):
            elsewhere.ask().acquire("build", 0)
    finally:
        client.indices.put_settings(index=index, body={block: None})
    with holding(elsewhere.ask(), "build", 0):
        pass
