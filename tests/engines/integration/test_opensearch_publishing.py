"""How a generation gets into OpenSearch (G1), and what an OpenSearch in trouble means for an answer (E3)."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from index_mappings.documents import DOCUMENTS, CategoryDocument, Role, Shop
from index_mappings.generations import STAMP, Stamp, alias_name, index_name, new_generation, previous_alias
from index_mappings.opensearch import TYPEAHEAD, wire_document
from indexer.jobs.build import build
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.bulk_loading import Pace
from indexer.sinks.opensearch.generation import OpenSearchWriter, merge
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sources.ndjson import NdjsonCatalogue
from shop_directory.search.engine import GuardedEngine, SearchRequest
from shop_directory.search.failures import BackendUnavailable, GenerationGone
from shop_directory.search.opensearch.engine import OpenSearchBackend, OpenSearchEngine
from shop_directory.search.opensearch.folder import FolderLocation
from shop_directory.search.plan import MATCH_ALL, Plan
from shop_directory.search.planned_backend import snapshot_of
from shop_directory.search.protocol import CouponQuery, Snapshot
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.processes.load.relay import counting_relay
from tests.rules.backends.asking import find, names, suggest
from tests.support.catalogues import coupon, offer, shipping, shop, trust, write_catalogue_directory
from tests.support.loopback import Forwarding, listening
from tests.support.real.node_build import NodeBuild
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode

pytestmark = pytest.mark.opensearch
_KINDS: Final = (*DOCUMENTS, STAMP)
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


_BOUND_S: Final = 2.0
_LAMP: Final = Shop("lamp", "Lamp", (), "lamp.internal", ("light",), (), None)
_BROWSE: Final = Plan("shops", ((0, MATCH_ALL),))
_COUNT: Final = SearchRequest(_BROWSE, 0, total=True)
_QUESTIONS: Final[Mapping[str, Callable[[Snapshot], Awaitable[object]]]] = {
    "find": lambda directory: find(directory, "lamp"),
    "find nothing": lambda directory: find(directory, "qqxx"),
    "browse": lambda directory: find(directory, ""),
    "shop": lambda directory: directory.shop("lamp.internal"),
    "unknown shop": lambda directory: directory.shop("nobody.internal"),
    "shop with offers": lambda directory: directory.shop("lamp.internal", 100),
    "coupons": lambda directory: directory.coupons(CouponQuery(("lamp",), 0, "rest", None, None)),
    "all coupons": lambda directory: directory.coupons(CouponQuery(None, 0, "rest", None, None)),
    "facts": lambda directory: directory.facts(("lamp",)),
    "trust": lambda directory: directory.trust("lamp"),
    "trust of nobody": lambda directory: directory.trust("nobody.internal"),
    "offer": lambda directory: directory.offer("o1"),
    "merge candidates": lambda directory: directory.merge_candidates(_LAMP, 10),
    "merge effects": lambda directory: directory.merge_effects(_LAMP, _LAMP),
}


@pytest.fixture
def asked_documents(tmp_path: Path) -> Documents:
    return projected(
        [shop("Lamp", "lamp.internal", id="lamp", categories=["light"]), shop("Candle")],
        tmp_path,
        coupons=[coupon("SAVE", "lamp")],
        offers=[offer("o1", "lamp")],
        shipping=[shipping("lamp")],
        trust=[trust("lamp", "registrar", "R")],
    )


async def _assert_each_fails_in_time(snapshot: Snapshot, failure: type[BackendUnavailable]) -> None:
    async def fails(name: str, question: Callable[[Snapshot], Awaitable[object]]) -> None:
        started = time.monotonic()
        with pytest.raises(BackendUnavailable) as raised:
            await question(snapshot)
        assert type(raised.value) is failure, name
        assert time.monotonic() - started < _BOUND_S, name

    # Together, as each may take nearly all of its time.
    await asyncio.gather(*(fails(*one) for one in _QUESTIONS.items()))


async def _assert_answers(snapshot: Snapshot) -> None:
    assert names((await find(snapshot, "lamp")).shops) == ["Lamp"]
    assert [found.shop.name for found in (await suggest(snapshot, "cand")).shops] == ["Candle"]
    lamp = await snapshot.shop("lamp.internal")
    assert lamp is not None
    assert [category.slug for category in await snapshot.categories()] == ["light", "things"]


@asynccontextmanager
async def _published(url: str, documents: Documents) -> AsyncIterator[OpenSearchBackend]:
    """A backend with the service's own time limit, on a generation of these documents."""
    prefix = f"test-{secrets.token_hex(6)}"
    sink = OpenSearchSink([url], prefix)
    publish(sink, documents)
    sink.close()
    backend = OpenSearchBackend([url], prefix)
    try:
        yield backend
    finally:
        await backend.close()


@pytest.mark.slow
@pytest.mark.rule("E3")
async def test_a_search_that_ran_out_of_time_is_never_a_part_of_the_answer(
    spare_node: OpenSearchNode, tmp_path: Path
) -> None:
    many = projected((shop(f"Lamp {n} {n * 7919 % 4001}", f"l{n}.internal") for n in range(4_000)), tmp_path)
    async with _published(spare_node.url, many) as backend:
        guarded = backend._engine
        assert isinstance(guarded, GuardedEngine)
        engine = guarded._engine
        assert isinstance(engine, OpenSearchEngine)
        # Without the guard, which would soon ask no more.
        snapshot = await snapshot_of(engine, (await backend.snapshot()).stamp)
        assert (await find(snapshot, "lamp")).total == 4_000
        engine.shard_time_share = 0.0007
        outcomes: list[int | type[Exception]] = []
        for _ in range(20):
            try:
                outcomes.append((await find(snapshot, "lamp 1 2 amp")).total)
            except BackendUnavailable as failure:
                outcomes.append(type(failure))
        engine.shard_time_share = 0.9
        whole = (await find(snapshot, "lamp 1 2 amp")).total
        assert whole > 100
        assert BackendUnavailable in outcomes
        assert set(outcomes) <= {whole, BackendUnavailable}


@pytest.mark.rule("E3", "C2.one_generation")
async def test_a_deleted_index_is_a_generation_that_is_gone(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, asked_documents: Documents
) -> None:
    stamp = publish(opensearch_engine.sink, asked_documents)
    snapshot = await opensearch_engine.backend.snapshot()
    await _assert_answers(snapshot)
    for kind in DOCUMENTS:
        client.indices.delete(index=index_name(opensearch_location.prefix, kind, stamp.generation))
    await _assert_each_fails_in_time(snapshot, GenerationGone)
    with pytest.raises(GenerationGone):
        await opensearch_engine.reader.search(stamp, (_COUNT, _COUNT))


@pytest.mark.fast
@pytest.mark.rule("E3", "A6.whole", "I58")
async def test_a_closed_index_is_a_failure_and_one_with_red_shards_answers_in_whole_or_not_at_all(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, asked_documents: Documents
) -> None:
    stamp = publish(opensearch_engine.sink, asked_documents)
    snapshot = await opensearch_engine.backend.snapshot()
    whole = {name: await question(snapshot) for name, question in _QUESTIONS.items()}
    index = ",".join(index_name(opensearch_location.prefix, kind, stamp.generation) for kind in DOCUMENTS)
    client.indices.close(index=index)
    await _assert_each_fails_in_time(snapshot, BackendUnavailable)
    with pytest.raises(BackendUnavailable):
        await opensearch_engine.reader.search(stamp, (_COUNT, _COUNT))
    client.indices.open(index=index, params={"wait_for_active_shards": "0"})
    while client.cluster.health(index=index)["status"] != "green":
        for name, question in _QUESTIONS.items():
            with suppress(BackendUnavailable):
                assert await question(snapshot) == whole[name], name
    await _assert_answers(snapshot)


@pytest.mark.rule("E3", "G1")
async def test_an_alias_on_two_generations_is_a_failure(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, asked_documents: Documents
) -> None:
    first, second = (publish(opensearch_engine.sink, asked_documents) for _ in range(2))
    assert (await opensearch_engine.backend.snapshot()).stamp == second
    prefix = opensearch_location.prefix
    old, alias = index_name(prefix, STAMP, first.generation), alias_name(prefix, STAMP)
    client.indices.put_alias(index=old, name=alias)
    with pytest.raises(BackendUnavailable) as failure:
        await opensearch_engine.backend.refresh()
    assert type(failure.value) is BackendUnavailable
    client.indices.delete_alias(index=old, name=alias)
    assert (await opensearch_engine.backend.refresh()).stamp == second


@pytest.mark.rule("E3")
async def test_a_request_past_the_time_limit_is_a_failure(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, asked_documents: Documents
) -> None:
    stamp = publish(opensearch_engine.sink, asked_documents)
    hasty = OpenSearchEngine([opensearch_location.url], opensearch_location.prefix, timeout=0.000_1)
    questions: list[Awaitable[Any]] = [
        hasty.live(),
        hasty.search(stamp, (SearchRequest(_BROWSE, 1, total=True),)),
        hasty.search(stamp, (_COUNT, _COUNT)),
    ]
    for question in questions:
        with pytest.raises(BackendUnavailable) as failure:
            await question
        assert type(failure.value) is BackendUnavailable
    await hasty.close()


@pytest.mark.rule("E3", "C1")
async def test_the_stamp_of_a_node_that_takes_half_a_second_for_each_answer_is_read(
    opensearch_location: OpenSearchLocation, opensearch_engine: Engine, asked_documents: Documents, tmp_path: Path
) -> None:
    stamp = publish(opensearch_engine.sink, asked_documents)
    with counting_relay(opensearch_location.url) as relay:
        relay.delay = 0.6
        location = FolderLocation(tmp_path / "folder")
        engine = OpenSearchEngine([relay.url], opensearch_location.prefix, timeout=1.5, location=location)
        started = time.monotonic()
        assert await engine.live() == stamp
        assert time.monotonic() - started < _BOUND_S
        await engine.close()
