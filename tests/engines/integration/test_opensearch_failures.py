"""What an OpenSearch in trouble means for an answer: a failure in time, and never less than the whole (E3)."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import DOCUMENTS, Shop
from index_mappings.generations import STAMP, alias_name, index_name
from indexer.sinks.opensearch.sink import OpenSearchSink
from service.search.engine import GuardedEngine, SearchRequest
from service.search.failures import BackendUnavailable, GenerationGone
from service.search.opensearch.engine import OpenSearchBackend, OpenSearchEngine
from service.search.opensearch.folder import FolderLocation
from service.search.plan import MATCH_ALL, Plan
from service.search.planned_backend import snapshot_of
from service.search.protocol import CouponQuery, SearchBackend, Snapshot
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import Documents, projected, publish
from tests.processes.load.relay import counting_relay
from tests.rules.backends.asking import find, names, suggest
from tests.support.catalogues import coupon, offer, shipping, shop, trust
from tests.support.real.opensearch import OpenSearchNode

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
    "coupons": lambda directory: directory.coupons(CouponQuery("lamp", 0, "rest", None, None)),
    "all coupons": lambda directory: directory.coupons(CouponQuery(None, 0, "rest", None, None)),
    "facts": lambda directory: directory.facts("lamp"),
    "trust": lambda directory: directory.trust("lamp"),
    "trust of nobody": lambda directory: directory.trust("nobody.internal"),
    "offer": lambda directory: directory.offer("o1"),
    "merge candidates": lambda directory: directory.merge_candidates(_LAMP, 10),
    "merge effects": lambda directory: directory.merge_effects(_LAMP, _LAMP),
}

pytestmark = pytest.mark.opensearch


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
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


async def _assert_nothing_is_live_in_time(backend: SearchBackend) -> None:
    """After two seconds not even the stamp is trusted, and with it no category (C1)."""
    await asyncio.sleep(_BOUND_S)
    for ask in (backend.refresh, backend.snapshot):
        started = time.monotonic()
        with pytest.raises(BackendUnavailable):
            await ask()
        assert time.monotonic() - started < _BOUND_S


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
@pytest.mark.rule("E3", "C1.stale")
async def test_a_node_that_hangs_is_a_failure_in_time_and_answers_when_it_goes_on(
    spare_node: OpenSearchNode, documents: Documents
) -> None:
    async with _published(spare_node.url, documents) as backend:
        snapshot = await backend.snapshot()
        await _assert_answers(snapshot)

        spare_node.pause()
        await _assert_each_fails_in_time(snapshot, BackendUnavailable)
        await _assert_nothing_is_live_in_time(backend)

        spare_node.resume()
        await asyncio.to_thread(spare_node.wait_until_green)
        await _assert_answers(await backend.snapshot())


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
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    stamp = publish(opensearch_engine.sink, documents)
    snapshot = await opensearch_engine.backend.snapshot()
    await _assert_answers(snapshot)
    for kind in DOCUMENTS:
        client.indices.delete(index=index_name(opensearch_location.prefix, kind, stamp.generation))
    await _assert_each_fails_in_time(snapshot, GenerationGone)
    with pytest.raises(GenerationGone):
        await opensearch_engine.reader.search(stamp, (_COUNT, _COUNT))


@pytest.mark.rule("E3", "A6.whole", "I58")
async def test_a_closed_index_is_a_failure_and_one_with_red_shards_answers_in_whole_or_not_at_all(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    stamp = publish(opensearch_engine.sink, documents)
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
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, client: OpenSearch, documents: Documents
) -> None:
    first, second = (publish(opensearch_engine.sink, documents) for _ in range(2))
    assert (await opensearch_engine.backend.snapshot()).stamp == second
    old, alias = (
        index_name(opensearch_location.prefix, STAMP, first.generation),
        alias_name(opensearch_location.prefix, STAMP),
    )
    client.indices.put_alias(index=old, name=alias)
    with pytest.raises(BackendUnavailable) as failure:
        await opensearch_engine.backend.refresh()
    assert type(failure.value) is BackendUnavailable
    client.indices.delete_alias(index=old, name=alias)
    assert (await opensearch_engine.backend.refresh()).stamp == second


@pytest.mark.rule("E3")
async def test_a_request_past_the_time_limit_is_a_failure(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, documents: Documents
) -> None:
    stamp = publish(opensearch_engine.sink, documents)
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
    opensearch_location: OpenSearchLocation, opensearch_engine: Engine, documents: Documents, tmp_path: Path
) -> None:
    stamp = publish(opensearch_engine.sink, documents)
    with counting_relay(opensearch_location.url) as relay:
        relay.delay = 0.6
        location = FolderLocation(tmp_path / "folder")
        engine = OpenSearchEngine([relay.url], opensearch_location.prefix, timeout=1.5, location=location)
        started = time.monotonic()
        assert await engine.live() == stamp
        assert time.monotonic() - started < _BOUND_S
        await engine.close()
