"""How a generation gets into OpenSearch: strict, in one step, and with a replica where there can be one (G1)."""

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from index_mappings.documents import DOCUMENTS, CategoryDocument, Role
from index_mappings.generations import STAMP, Stamp, alias_name, index_name, previous_alias
from index_mappings.opensearch import wire_document
from index_mappings.typeahead.chunks import TYPEAHEAD
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.sink import OpenSearchSink
from service.search.failures import BackendUnavailable
from service.search.opensearch.engine import OpenSearchBackend
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.rules.backends.asking import find, names
from tests.support.catalogues import build_into, coupon, offer, shop, write_catalogue
from tests.support.real.node_build import NodeBuild
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode

_KINDS: Final = (*DOCUMENTS, STAMP)

pytestmark = pytest.mark.opensearch


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    """One document of each kind."""
    shops = [shop("Lamp", "lamp.internal", id="lamp")]
    return projected(shops, tmp_path, coupons=[coupon("SAVE", "lamp")], offers=[offer("o1", "lamp")])


def _aliases(client: OpenSearch, prefix: str) -> set[tuple[str, str]]:
    """Every alias under the prefix with its index."""
    listed = client.cat.aliases(name=f"{prefix}-*", params={"format": "json"})
    return {(row["alias"], row["index"]) for row in listed}


def _all_on(prefix: str, stamp: Stamp) -> set[tuple[str, str]]:
    return {(alias_name(prefix, kind), index_name(prefix, kind, stamp.generation)) for kind in _KINDS}


def _indices(prefix: str, stamp: Stamp) -> set[str]:
    return {index_name(prefix, kind, stamp.generation) for kind in (*_KINDS, TYPEAHEAD)}


@dataclass(frozen=True, slots=True)
class _WiderCategory(CategoryDocument):
    """A category with a field that no mapping declares."""

    colour: Annotated[str, Role.STORED]


@pytest.mark.rule("X4", "G1.verified")
async def test_a_field_that_is_not_declared_is_refused(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    stamp, writer = sealed(opensearch_engine.sink, documents)
    for kind, of_kind in documents.by_kind.items():
        index = index_name(opensearch_location.prefix, kind, stamp.generation)
        declared = client.indices.get_mapping(index=index)[index]["mappings"]
        with pytest.raises(RequestError, match="strict_dynamic_mapping_exception"):
            client.index(index=index, body={**wire_document(of_kind[0]), "colour": "red"})
        assert client.indices.get_mapping(index=index)[index]["mappings"] == declared

    category = documents.by_kind["categories"][0]
    # It becomes a dead letter, and the verification finds that it is missing.
    assert writer.add("categories", [_WiderCategory(**asdict(category), colour="unheard-of")]) == 0
    assert writer.count("categories") == 1


@pytest.mark.rule("G1")
async def test_all_aliases_move_together_and_only_when_published(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    prefix = opensearch_location.prefix
    first, writer = sealed(opensearch_engine.sink, documents)
    assert _aliases(client, prefix) == set()
    writer.publish()
    assert _aliases(client, prefix) == _all_on(prefix, first)

    second, writer = sealed(opensearch_engine.sink, documents)
    assert _aliases(client, prefix) == _all_on(prefix, first)
    assert (await opensearch_engine.backend.refresh()).stamp == first
    writer.publish()
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
        stamp, writer = sealed(opensearch_engine.sink, documents)
        client.indices.delete_alias(index=index, name=alias)
        before = _aliases(client, prefix)
        with pytest.raises(SinkError, match="could not be published"):
            writer.publish()
        assert _aliases(client, prefix) == before == _all_on(prefix, live) - {(alias, index)}
        opensearch_engine.sink.drop(stamp.generation)
        client.indices.update_aliases(
            body={"actions": [{"add": {"index": index, "alias": alias, "is_write_index": True}}]}
        )
    assert _aliases(client, prefix) == _all_on(prefix, live)


@pytest.mark.rule("G1")
async def test_a_build_that_fails_leaves_the_live_generation_and_no_remains(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, tmp_path: Path
) -> None:
    prefix = opensearch_location.prefix
    live = build_into(opensearch_engine.sink, write_catalogue(tmp_path / "good.ndjson", [shop("Lamp")])).stamp
    overtaken = write_catalogue(tmp_path / "next.ndjson", [shop("Lamp"), shop("Candle")])
    client.indices.delete_alias(index=index_name(prefix, "shops", live.generation), name=alias_name(prefix, "shops"))
    with pytest.raises(SinkError):
        build_into(opensearch_engine.sink, overtaken)
    assert set(client.indices.get(index=f"{prefix}-*")) == _indices(prefix, live)
    assert (await opensearch_engine.backend.refresh()).stamp == live


def _rows(client: OpenSearch, prefix: str) -> dict[str, tuple[str, str]]:
    """Each index under the prefix: its health and its number of replicas."""
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
