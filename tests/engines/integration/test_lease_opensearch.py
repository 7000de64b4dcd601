"""What only OpenSearch's lease can go through: pauses, deaths on other machines, lost indices, an engine away (G4)."""

import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from indexer.jobs.retention import prune
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, LeaseHolder, LeaseLostError, LeaseUnansweredError, holding
from indexer.sinks.opensearch.lease import LeaseDocument, OpenSearchLease
from indexer.sinks.opensearch.sink import OpenSearchSink
from tests.engines.integration.leases import LeaseLocation, held_by_us, opensearch_lease, reply_to
from tests.support.real.opensearch import OpenSearchNode
from tests.support.real.process import free_ports

TTL_S: Final = 1.5
PATIENCE_S: Final = 20.0


@pytest.fixture
def location(opensearch_url: str) -> Iterator[LeaseLocation]:
    """A prefix of its own in the session's OpenSearch, where a lease does not last long without renewal."""
    with opensearch_lease(opensearch_url, TTL_S) as found:
        yield found


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_paused_job_loses_its_lease_and_learns_of_it_before_it_writes(location: LeaseLocation) -> None:
    with location.holder() as process:
        process.send_signal(signal.SIGSTOP)
        successor, third = location.ask(), location.ask()
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
def test_a_working_job_keeps_its_lease_however_long_others_wait(location: LeaseLocation) -> None:
    first, second = location.ask(), location.ask()
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
    location: LeaseLocation, client: OpenSearch, document: dict[str, Any], named: str
) -> None:
    with holding(location.ask(), "build", 0):
        pass  # makes the index
    client.index(index=f"{location.prefix}-lease", id="lease", body=document)
    lease, waiting = location.ask(), location.ask()
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
def test_who_tries_from_time_to_time_takes_over_as_well(location: LeaseLocation, client: OpenSearch) -> None:
    with holding(location.ask(), "build", 0):
        pass
    client.index(index=f"{location.prefix}-lease", id="lease", body=_elsewhere(machine="another boot pid:[1]"))
    lease = location.ask()
    with pytest.raises(LeaseHeldError):
        lease.acquire("follow", 0)
    time.sleep(TTL_S)
    lease.acquire("follow", 0)
    lease.check()
    lease.release()


@pytest.mark.opensearch
@pytest.mark.rule("G4")
def test_a_lease_whose_index_was_deleted_is_lost_and_the_next_one_is_safe_from_it(
    location: LeaseLocation, client: OpenSearch
) -> None:
    first, second, third = location.ask(), location.ask(), location.ask()
    first.acquire("build", 0)
    client.indices.delete(index=f"{location.prefix}-lease")
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
    location: LeaseLocation, client: OpenSearch
) -> None:
    lease = OpenSearchLease(client, location.prefix)
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
    location: LeaseLocation, client: OpenSearch, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = location.prefix
    lease = location.ask()
    with holding(lease, "prune", 0):
        assert dict(client.indices.get(index=f"{prefix}-*")) == {}
        assert client.cat.indices(index=f"{prefix}-*", format="json") == []
        assert client.search(index=f"{prefix}-*")["hits"]["hits"] == []
        sink = OpenSearchSink([location.target], prefix)
        assert prune(sink, None, datetime.now(UTC)) == ()
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
def test_a_full_disk_is_named_where_the_lease_cannot_be_written(location: LeaseLocation, client: OpenSearch) -> None:
    holding_it = location.ask()
    holding_it.acquire("follow", 0)
    holding_it.release()
    index, block = f"{location.prefix}-lease", "index.blocks.read_only_allow_delete"
    client.indices.put_settings(index=index, body={block: True})
    try:
        with pytest.raises(
            SinkError, match=r"^the engine does not answer for the lease: its indices are read-only, as on"
        ):
            location.ask().acquire("build", 0)
    finally:
        client.indices.put_settings(index=index, body={block: None})
    with holding(location.ask(), "build", 0):
        pass
