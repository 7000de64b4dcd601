"""A build leaves one segment a kind in a real OpenSearch; a merge that goes wrong is logged and fails nothing (G1)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import index_name, new_generation
from indexer.jobs.build import build
from indexer.sinks.lease import LeaseLostError
from indexer.sinks.opensearch.bulk_loading import Pace
from indexer.sinks.opensearch.generation import OpenSearchWriter, merge
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sources.ndjson import NdjsonCatalogue
from tests.engines.conftest import OpenSearchLocation
from tests.support.catalogues import coupon, shop, write_catalogue_directory
from tests.support.loopback import Forwarding, listening

SHOPS: Final = 120
SEVERAL: Final = 5
# Small requests, two at a time, so that there is more than one segment before.
PACE: Final = Pace(chunk_documents=10, requests=2)
REFUSED: Final = (403, b'{"error":{"type":"security_exception"},"status":403}')
UNKNOWN: Final = (404, b'{"error":{"type":"resource_not_found_exception"},"status":404}')
UNFINISHED: Final = (200, b'{"completed":false}')
FAILED: Final = (200, b'{"completed":true,"error":{"type":"illegal_state_exception"}}')
INCOMPLETE: Final = (200, b'{"completed":true,"response":{"_shards":{"failed":1}}}')

pytestmark = pytest.mark.opensearch


@pytest.fixture
def location(opensearch_location: OpenSearchLocation) -> OpenSearchLocation:
    """Where the test builds."""
    return opensearch_location


@pytest.fixture
def catalogue(tmp_path: Path) -> NdjsonCatalogue:
    """Shops with a coupon each."""
    ids = [f"s{number}" for number in range(SHOPS)]
    shops = [shop(f"Lumen {one}", f"{one}.internal", id=one) for one in ids]
    coupons = [coupon(f"SAVE-{one}", one) for one in ids]
    return NdjsonCatalogue(write_catalogue_directory(tmp_path / "catalogue", shops=shops, coupons=coupons))


def _segments(location: OpenSearchLocation, generation: str) -> dict[str, list[int]]:
    """Of each kind, how many segments each copy of its index has that searches look into."""
    with OpenSearch([location.url]) as client:
        names = {kind: index_name(location.prefix, kind, generation) for kind in DOCUMENTS}
        found = client.indices.segments(index=",".join(names.values()))["indices"]
    return {
        kind: [copy["num_search_segments"] for shard in found[name]["shards"].values() for copy in shard]
        for kind, name in names.items()
    }


@contextmanager
def _spoiled(node: str, part: str, answer: tuple[int, bytes]) -> Iterator[str]:
    """The URL of a relay to a node that itself answers every request with this in its path."""

    class Spoiling(Forwarding):
        def through(self, body: bytes) -> None:
            self.reply(*(answer if part in self.path else self.forwarded(body)))

    with listening(Spoiling, node=urlsplit(node).netloc) as port:
        yield f"http://127.0.0.1:{port}"


def _built(url: str, location: OpenSearchLocation, catalogue: NdjsonCatalogue, tmp_path: Path) -> str:
    """Build and publish; returns the generation."""
    sink = OpenSearchSink([url], location.prefix, letters=tmp_path / "letters", pace=PACE)
    try:
        summary = build(catalogue, sink)
        live = sink.live()
        assert summary.published
        assert live == summary.stamp
        return summary.stamp.generation
    finally:
        sink.close()


@pytest.mark.rule("G1")
def test_a_build_leaves_one_segment_of_each_kind(
    location: OpenSearchLocation, catalogue: NdjsonCatalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    generation = _built(location.url, location, catalogue, tmp_path)
    assert _segments(location, generation) == {kind: [1] for kind in DOCUMENTS} | {"offers": [0]}
    assert caplog.messages == []


@pytest.mark.rule("G1")
def test_what_lay_in_several_segments_lies_in_one_after_the_next_refresh(location: OpenSearchLocation) -> None:
    (name,) = names = _one_index(location)
    with OpenSearch([location.url]) as client:
        for number in range(SEVERAL):
            client.index(index=name, id=str(number), body={"number": number}, refresh=True)
        about = client.indices.segments(index=name)["indices"][name]
        assert [copy["num_search_segments"] for (copy,) in about["shards"].values()] == [SEVERAL]
        assert merge(client, names, lambda: None)
        client.indices.refresh(index=name)
        about = client.indices.segments(index=name)["indices"][name]
        assert [copy["num_search_segments"] for (copy,) in about["shards"].values()] == [1]
        assert client.count(index=name)["count"] == SEVERAL


@pytest.mark.rule("G1")
@pytest.mark.parametrize(
    ("part", "answer", "logged"),
    [
        ("/_forcemerge", REFUSED, "the new generation could not be merged: AuthorizationException, a user that"),
        ("/_tasks/", REFUSED, "it is not known whether the new generation was merged: AuthorizationException, a"),
        ("/_tasks/", UNKNOWN, "it is not known whether the new generation was merged: NotFoundError"),
        ("/_tasks/", FAILED, "a part of the new generation could not be merged; it stays as it is"),
        ("/_tasks/", INCOMPLETE, "a part of the new generation could not be merged; it stays as it is"),
    ],
)
def test_a_merge_that_fails_is_reported_and_the_build_is_published(
    location: OpenSearchLocation,
    catalogue: NdjsonCatalogue,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    part: str,
    answer: tuple[int, bytes],
    logged: str,
) -> None:
    with _spoiled(location.url, part, answer) as url:
        generation = _built(url, location, catalogue, tmp_path)
    (line,) = caplog.messages
    assert line.startswith(logged)
    with OpenSearch([location.url]) as client:
        assert client.count(index=index_name(location.prefix, "shops", generation))["count"] == SHOPS


def test_a_merge_is_waited_for_no_longer_than_its_bound_and_other_work_goes_on_meanwhile(
    location: OpenSearchLocation, caplog: pytest.LogCaptureFixture
) -> None:
    names = _one_index(location)
    ticks: list[float] = []
    with _spoiled(location.url, "/_tasks/", UNFINISHED) as url, OpenSearch([url], max_retries=0) as client:
        began = time.monotonic()
        assert not merge(client, names, lambda: ticks.append(time.monotonic()), bound=1.5)
        assert 1.5 <= time.monotonic() - began < 1.5 + 2.0
    assert caplog.messages == ["the new generation was not merged within 1.5 s; it stays as it is"]
    # 0.02 s at first, twice as long each time, half a second at most.
    assert len(ticks) >= 4


def test_a_lease_that_is_lost_during_a_merge_ends_the_waiting(location: OpenSearchLocation) -> None:
    names = _one_index(location)

    def lost() -> None:
        raise LeaseLostError("another job has it")

    with OpenSearch([location.url]) as client, pytest.raises(LeaseLostError):
        merge(client, names, lost)


@pytest.mark.rule("G1")
def test_what_is_left_of_a_build_that_is_ended_while_it_merges_is_removed(
    location: OpenSearchLocation, catalogue: NdjsonCatalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _built(location.url, location, catalogue, tmp_path)

    def end() -> None:
        raise KeyboardInterrupt

    class Ended(OpenSearchSink):
        def begin(self, generation: str) -> OpenSearchWriter:
            writer = super().begin(generation)
            merging = writer.merge
            monkeypatch.setattr(writer, "merge", lambda _: merging(end))
            return writer

    sink = Ended([location.url], location.prefix, letters=tmp_path / "letters", pace=PACE)
    try:
        with pytest.raises(KeyboardInterrupt):
            build(catalogue, sink)
        assert [generation.name for generation in sink.generations()] == [before]
    finally:
        sink.close()


def _one_index(location: OpenSearchLocation) -> list[str]:
    name = index_name(location.prefix, "shops", new_generation(datetime.now(UTC)))
    with OpenSearch([location.url]) as client:
        client.indices.create(index=name, body={"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
    return [name]
