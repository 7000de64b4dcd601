"""How a generation gets into OpenSearch: merged to one segment a kind, in one step, with a replica (G1)."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from index_mappings.documents import DOCUMENTS, CategoryDocument, Role
from index_mappings.generations import STAMP, Stamp, alias_name, index_name, new_generation, previous_alias
from index_mappings.opensearch import wire_document
from index_mappings.typeahead.chunks import TYPEAHEAD
from indexer.jobs.build import build
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.bulk_loading import Pace
from indexer.sinks.opensearch.generation import OpenSearchWriter, merge
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sources.ndjson import NdjsonCatalogue
from service.search.failures import BackendUnavailable
from service.search.opensearch.engine import OpenSearchBackend
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.rules.backends.asking import find, names
from tests.support.catalogues import coupon, offer, shop, write_catalogue_directory
from tests.support.loopback import Forwarding, listening
from tests.support.real.node_build import NodeBuild
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode

_KINDS: Final = (*DOCUMENTS, STAMP)

pytestmark = pytest.mark.opensearch
SHOPS: Final = 120
# Small requests, two at a time, so that there is more than one segment before.
PACE: Final = Pace(chunk_documents=10, requests=2)
REFUSED: Final = (403, b'{"error":{"type":"security_exception"},"status":403}')
UNKNOWN: Final = (404, b'{"error":{"type":"resource_not_found_exception"},"status":404}')
UNFINISHED: Final = (200, b'{"completed":false}')
FAILED: Final = (200, b'{"completed":true,"error":{"type":"illegal_state_exception"}}')
INCOMPLETE: Final = (200, b'{"completed":true,"response":{"_shards":{"failed":1}}}')


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    shops = [shop("Lamp", "lamp.internal", id="lamp")]
    return projected(shops, tmp_path, coupons=[coupon("SAVE", "lamp")], offers=[offer("o1", "lamp")])


def _aliases(client: OpenSearch, prefix: str) -> set[tuple[str, str]]:
    listed = client.cat.aliases(name=f"{prefix}-*", params={"format": "json"})
    return {(row["alias"], row["index"]) for row in listed}


def _all_on(prefix: str, stamp: Stamp) -> set[tuple[str, str]]:
    return {(alias_name(prefix, kind), index_name(prefix, kind, stamp.generation)) for kind in _KINDS}


def _indices(prefix: str, stamp: Stamp) -> set[str]:
    return {index_name(prefix, kind, stamp.generation) for kind in (*_KINDS, TYPEAHEAD)}


@dataclass(frozen=True, slots=True)
class _WiderCategory(CategoryDocument):
    colour: Annotated[str, Role.STORED]


@pytest.mark.rule("X4", "G1.verified")
async def test_a_field_that_is_not_declared_is_refused(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    generation = new_generation(datetime.now(UTC))
    writer = opensearch_engine.sink.begin(generation)
    for kind, of_kind in documents.by_kind.items():
        index = index_name(opensearch_location.prefix, kind, generation)
        declared = client.indices.get_mapping(index=index)[index]["mappings"]
        with pytest.raises(RequestError, match="strict_dynamic_mapping_exception"):
            client.index(index=index, body={**wire_document(of_kind[0]), "colour": "red"})
        assert client.indices.get_mapping(index=index)[index]["mappings"] == declared

    category = documents.by_kind["categories"][0]
    # It becomes a dead letter, and the verification finds that it is missing.
    assert writer.add("categories", [_WiderCategory(**asdict(category), colour="unheard-of")]) == 0
    assert writer.count("categories") == 0


@pytest.mark.rule("G1")
async def test_all_aliases_move_together_and_only_when_published(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    prefix = opensearch_location.prefix
    first, become_live = sealed(opensearch_engine.sink, documents)
    assert _aliases(client, prefix) == set()
    become_live()
    assert _aliases(client, prefix) == _all_on(prefix, first)

    second, become_live = sealed(opensearch_engine.sink, documents)
    assert _aliases(client, prefix) == _all_on(prefix, first)
    assert (await opensearch_engine.backend.refresh()).stamp == first
    become_live()
    previous = (previous_alias(prefix), index_name(prefix, STAMP, first.generation))
    assert _aliases(client, prefix) == _all_on(prefix, second) | {previous}
    assert (await opensearch_engine.backend.refresh()).stamp == second


@pytest.mark.rule("G1")
async def test_one_alias_that_cannot_be_moved_leaves_them_all(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    prefix = opensearch_location.prefix
    live = publish(opensearch_engine.sink, documents)
    for kind in _KINDS:
        alias, index = alias_name(prefix, kind), index_name(prefix, kind, live.generation)
        stamp, become_live = sealed(opensearch_engine.sink, documents)
        client.indices.delete_alias(index=index, name=alias)
        before = _aliases(client, prefix)
        with pytest.raises(SinkError, match="could not be published"):
            become_live()
        assert _aliases(client, prefix) == before == _all_on(prefix, live) - {(alias, index)}
        opensearch_engine.sink.drop(stamp.generation)
        client.indices.update_aliases(
            body={"actions": [{"add": {"index": index, "alias": alias, "is_write_index": True}}]}
        )
    assert _aliases(client, prefix) == _all_on(prefix, live)


def _rows(client: OpenSearch, prefix: str) -> dict[str, tuple[str, str]]:
    listed: list[dict[str, Any]] = json.loads(json.dumps(client.cat.indices(index=f"{prefix}-*", format="json")))
    return {row["index"]: (row["health"], row["rep"]) for row in listed}


@pytest.mark.slow
@pytest.mark.rule("G1.replica", "E3")
async def test_a_cluster_holds_each_generation_twice_and_a_lost_shard_is_a_failure(
    node_build: NodeBuild, documents: Documents, tmp_path: Path
) -> None:
    cluster = OpenSearchCluster(node_build, tmp_path / "cluster", size=2)
    await asyncio.to_thread(cluster.start)
    try:
        with OpenSearch([cluster.urls[0]]) as client:
            sink = OpenSearchSink(cluster.urls[:1], "replicated", shards=2)
            stamp = publish(sink, documents)
            sink.close()
            assert _rows(client, "replicated") == dict.fromkeys(_indices("replicated", stamp), ("green", "1"))

            # Without its replicas each node has one of the two shards.
            shops = index_name("replicated", "shops", stamp.generation)
            client.indices.put_settings(body={"index.number_of_replicas": 0}, index=shops)
            rows = client.cat.shards(index=shops, params={"format": "json"})
            assert {(row["prirep"], row["node"]) for row in rows} == {("p", "node-1"), ("p", "node-2")}
        backend = OpenSearchBackend(cluster.urls[:1], "replicated")
        snapshot = await backend.snapshot()
        assert names((await find(snapshot, "lamp")).shops) == ["Lamp"]
        cluster.nodes[1].kill()
        with pytest.raises(BackendUnavailable):
            await find(snapshot, "lamp")
        with pytest.raises(BackendUnavailable):
            await snapshot.shop("nobody.internal")
        await backend.close()
    finally:
        await asyncio.to_thread(cluster.stop)


@pytest.mark.slow
@pytest.mark.rule("G1.replica")
async def test_a_lone_node_holds_each_generation_once(spare_node: OpenSearchNode, documents: Documents) -> None:
    with OpenSearch([spare_node.url]) as client:
        sink = OpenSearchSink([spare_node.url], "alone")
        stamp = publish(sink, documents)
        sink.close()
        assert _rows(client, "alone") == dict.fromkeys(_indices("alone", stamp), ("green", "0"))


@pytest.fixture
def location(opensearch_location: OpenSearchLocation) -> OpenSearchLocation:
    return opensearch_location


@pytest.fixture
def catalogue(tmp_path: Path) -> NdjsonCatalogue:
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
