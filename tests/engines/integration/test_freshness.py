"""The live stamp and generation: looked up in time, trusted for two seconds, absent, or replaced while it is read."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import DOCUMENTS, SCHEMA_VERSION
from index_mappings.embedded import pointer_path, stamp_path, to_checked_json
from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, first_stamp, index_name
from indexer.sinks.embedded.sink import EmbeddedSink
from service.app import create_app
from service.settings.service import Settings
from shop_directory.search.engine import SearchRequest
from shop_directory.search.failures import BackendUnavailable, GenerationGone, NotReadable
from shop_directory.search.plan import MATCH_ALL, Plan
from shop_directory.search.planned_backend import LiveStamp
from shop_directory.search.protocol import Found, Position, Snapshot
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import Documents, projected, publish
from tests.rules.backends.asking import find, names, suggest
from tests.rules.limits.clocks import HandClock
from tests.support import forked
from tests.support.catalogues import build_into, shop, write_catalogue
from tests.support.served import get, post, served
from tests.support.wire import INITIALIZE

_FIRST: Final = first_stamp("20260101t000000000000-aaaaaa", datetime(2026, 1, 1, tzinfo=UTC))
_SECOND: Final = replace(_FIRST, sequence=2)


class Published:
    """What an engine reports as live: a stamp, or a failure; counts how often it was asked."""

    def __init__(self, says: Stamp | Exception) -> None:
        self.says = says
        self.asked = 0
        self.begun = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()

    async def __call__(self) -> Stamp:
        self.asked += 1
        self.begun.set()
        await self.answering.wait()
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.mark.rule("C1")
async def test_the_stamp_is_looked_up_at_most_once_a_second() -> None:
    clock, published = HandClock(), Published(_FIRST)
    live = LiveStamp(published, clock)
    assert [await live.current() for _ in range(5)] == [_FIRST] * 5
    assert published.asked == 1

    published.says = _SECOND
    clock.pass_seconds(0.999)
    assert (await live.current(), published.asked) == (_FIRST, 1)
    clock.pass_seconds(0.001)
    assert (await live.current(), published.asked) == (_SECOND, 2)
    clock.pass_seconds(0.5)
    assert (await live.current(), published.asked) == (_SECOND, 2)


@pytest.mark.rule("C1")
async def test_requests_that_come_together_share_one_look_up() -> None:
    published = Published(_FIRST)
    published.answering.clear()
    live = LiveStamp(published, HandClock())
    asking = [asyncio.create_task(live.current()) for _ in range(50)]
    asking += [asyncio.create_task(live.reload()) for _ in range(5)]
    await published.begun.wait()
    # One caller who gives up takes nothing from the others.
    asking[0].cancel()
    await asyncio.sleep(0)
    published.answering.set()
    assert await asyncio.gather(*asking[1:]) == [_FIRST] * 54
    assert published.asked == 1
    assert asking[0].cancelled()


@pytest.mark.rule("C1", "C1.stale")
async def test_while_one_request_refreshes_the_stamp_the_others_use_a_recently_confirmed_one() -> None:
    clock, published = HandClock(), Published(_FIRST)
    live = LiveStamp(published, clock)
    assert await live.current() == _FIRST
    assert live.cached() == _FIRST

    published.says = _SECOND
    published.begun.clear()
    published.answering.clear()
    clock.pass_seconds(1.0)
    # No look-up runs yet: the next caller has to make it.
    assert live.cached() is None
    asking = asyncio.create_task(live.current())
    await published.begun.wait()
    assert (live.cached(), await live.current()) == (_FIRST, _FIRST)
    clock.pass_seconds(0.999)
    assert live.cached() == _FIRST
    clock.pass_seconds(0.001)
    assert live.cached() is None
    waiting = asyncio.create_task(live.current())
    await asyncio.sleep(0)
    assert not waiting.done()

    published.answering.set()
    assert (await asking, await waiting, published.asked) == (_SECOND, _SECOND, 2)


@pytest.mark.rule("C1.stale", "E3")
async def test_an_unconfirmed_stamp_is_trusted_for_two_seconds_and_then_no_longer() -> None:
    clock, published = HandClock(), Published(_FIRST)
    live = LiveStamp(published, clock)
    assert await live.current() == _FIRST

    published.says = BackendUnavailable("away")
    for later in (1.0, 0.5, 0.499):
        clock.pass_seconds(later)
        assert await live.current() == _FIRST, later
    assert published.asked == 4
    for later in (0.001, 0.001, 3_600.0):
        clock.pass_seconds(later)
        with pytest.raises(BackendUnavailable, match="away"):
            await live.current()

    published.says = _SECOND
    assert await live.current() == _SECOND


@pytest.mark.rule("C1.stale")
async def test_a_stamp_is_as_old_as_the_question_that_it_answers() -> None:
    clock, published = HandClock(), Published(_FIRST)
    published.answering.clear()
    live = LiveStamp(published, clock)
    asking = asyncio.create_task(live.current())
    await published.begun.wait()
    clock.pass_seconds(1.5)
    published.answering.set()
    assert await asking == _FIRST

    published.says = BackendUnavailable("away")
    clock.pass_seconds(0.25)
    assert await live.current() == _FIRST
    clock.pass_seconds(0.25)
    with pytest.raises(BackendUnavailable):
        await live.current()


@pytest.mark.rule("G4.schema")
@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, SCHEMA_VERSION - 1])
async def test_a_generation_of_another_schema_is_not_read_until_a_readable_one_follows(
    engine: Engine, tmp_path: Path, version: int
) -> None:
    documents = projected([shop("Lamp")], tmp_path)
    publish(engine.sink, documents, schema_version=version)
    for ask in (engine.backend.snapshot, engine.backend.refresh):
        with pytest.raises(NotReadable, match=f"has schema version {version}, this service reads {SCHEMA_VERSION}"):
            await ask()

    stamp = publish(engine.sink, documents)
    snapshot = await engine.backend.snapshot()
    assert (snapshot.stamp, names((await find(snapshot, "lamp")).shops)) == (stamp, ["Lamp"])


_DAMAGED_STAMPS: Final[tuple[Callable[[dict[str, Any]], object], ...]] = (
    lambda _: {},
    lambda _: [],
    lambda stamp: {**stamp, "generation": "../other"},
    lambda stamp: {**stamp, "generation": None},
    lambda stamp: {**stamp, "schema_version": "one"},
    lambda stamp: {**stamp, "sequence": None},
    lambda stamp: {**stamp, "counts": [1]},
    lambda stamp: {**stamp, "counts": {"shops": "many"}},
    lambda stamp: {name: stated for name, stated in stamp.items() if name != "built_at"},
)


@pytest.mark.rule("E3", "G1")
async def test_a_damaged_pointer_or_stamp_on_disk_is_a_failure(embedded_engine: Engine, tmp_path: Path) -> None:
    root = tmp_path / "index"
    stamp = publish(embedded_engine.sink, projected([shop("Lamp")], tmp_path))
    pointer, stamp_file = pointer_path(root), stamp_path(root, stamp.generation)
    whole_pointer, whole_stamp = pointer.read_bytes(), stamp_file.read_bytes()
    documents = [found for damage in _DAMAGED_STAMPS if isinstance(found := damage(stamp.as_wire()), dict)]
    broken = [(pointer, text) for text in (b"", b"\n", b"../../etc\n", "é".encode(), whole_pointer[:-8])]
    broken += [(stamp_file, text) for text in (b"", b"{", b"\xff\xfe", b"null", b"[]", whole_stamp[:-1])]
    broken += [(stamp_file, to_checked_json(damaged).encode()) for damaged in documents]
    for file, damaged in broken:
        file.write_bytes(damaged)
        with pytest.raises(BackendUnavailable) as failure:
            await embedded_engine.backend.refresh()
        assert not isinstance(failure.value, NotReadable), (file.name, damaged)
        pointer.write_bytes(whole_pointer)
        stamp_file.write_bytes(whole_stamp)
        assert (await embedded_engine.backend.refresh()).stamp == stamp


@pytest.mark.opensearch
@pytest.mark.rule("E3", "G1")
async def test_a_damaged_stamp_in_opensearch_is_a_failure(
    opensearch_engine: Engine, opensearch_location: OpenSearchLocation, tmp_path: Path
) -> None:
    stamp = publish(opensearch_engine.sink, projected([shop("Lamp")], tmp_path))
    index = index_name(opensearch_location.prefix, STAMP, stamp.generation)
    client = OpenSearch([opensearch_location.url])
    damaged: list[dict[str, object]] = [{}, *({"stamp": damage(stamp.as_wire())} for damage in _DAMAGED_STAMPS)]
    for document in damaged:
        client.index(index=index, body=document, id=STAMP_ID)
        with pytest.raises(BackendUnavailable) as failure:
            await opensearch_engine.backend.refresh()
        assert not isinstance(failure.value, NotReadable), document

    client.index(index=index, body={"stamp": stamp.as_wire()}, id=STAMP_ID)
    assert (await opensearch_engine.backend.refresh()).stamp == stamp
    assert list(client.indices.get_alias(name=alias_name(opensearch_location.prefix, STAMP))) == [index]
    client.close()


NO_INDEX: Final = (
    "No index is published where this service looks for one, so nothing can be answered. The operator builds one with "
    "shop-directory index build, or corrects the location, which the log names. Try again in 2 seconds."
)
READY: Final = (
    "search: nothing is published yet. Build the index with shop-directory index build; the log of this process says "
    "where it looks."
)


@pytest.mark.rule("O1", "G4.schema", "E5", "I73")
def test_without_an_index_calls_are_not_ready_and_an_index_published_later_is_served(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = engine.settings
    looked_in = str(given.data_dir) if given.engine == "embedded" else f"{given.index_prefix}-stamp"
    with served(create_app(given)) as base:
        replies = [post(base, "/tool/find_shop", {"query": "lamp"}), get(base, "/suggest?q=lamp")]
        ready = get(base, "/ready")
        build_into(engine.sink, write_catalogue(tmp_path / "shops.ndjson", [shop("Lamp")]))
        found = post(base, "/tool/find_shop", {"query": "lamp"})
    assert [(reply.status, reply.json["code"], reply.json["detail"]) for reply in replies] == [
        (503, "not_ready", NO_INDEX)
    ] * 2
    assert (ready.status, ready.json["code"], ready.json["detail"]) == (503, "not_ready", READY)
    assert not [reply for reply in (*replies, ready) if looked_in in reply.body.decode()]
    assert (found.status, [one["name"] for one in found.json["results"]]) == (200, ["Lamp"])
    at_start = [record.getMessage() for record in caplog.records if record.getMessage().startswith("there is no index")]
    assert len(at_start) == 1
    assert looked_in in at_start[0]
    assert "shop-directory index build" in at_start[0]


@pytest.mark.rule("G4.schema", "O1")
def test_an_index_of_another_schema_is_logged_at_the_start_with_both_versions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "index"
    stamp = build_into(EmbeddedSink(folder), write_catalogue(tmp_path / "shops.ndjson", [shop("Lamp")])).stamp
    other = replace(stamp, schema_version=SCHEMA_VERSION + 1).as_wire()
    stamp_path(folder, stamp.generation).write_text(json.dumps(other), encoding="utf-8")
    with caplog.at_level(logging.WARNING), served(create_app(Settings(data_dir=folder))) as base:
        reply = post(base, "/tool/find_shop", {"query": "lamp"})
    assert (reply.status, reply.json["code"]) == (503, "not_ready")
    assert "has a schema version that this service does not read" in reply.json["detail"]
    versions = f"schema version {SCHEMA_VERSION + 1}, this service reads {SCHEMA_VERSION}"
    assert [
        record.getMessage()
        for record in caplog.records
        if record.getMessage().startswith("there is no index") and versions in record.getMessage()
    ]


@pytest.mark.rule("I4", "E2", "E2.wait", "E5")
def test_over_stdio_a_wrong_folder_is_reported_to_the_client_without_and_on_stderr_with_its_path(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "wrong folder"
    call = {"name": "find_shop", "arguments": {"query": "lamp"}}
    messages = [INITIALIZE, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}]
    ended = forked.run(
        [sys.executable, "-m", "shop_directory", "mcp", "--data-dir", str(folder)],
        input="\n".join(json.dumps(message) for message in messages),
        cwd=tmp_path,
        text=True,
        timeout=60,
        check=True,
    )
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, ended.stdout.splitlines())}
    problem = json.loads(answers[2]["content"][0]["text"])
    assert (answers[2]["isError"], problem["code"], problem["detail"]) == (True, "not_ready", NO_INDEX)
    assert "wrong folder" not in ended.stdout
    assert f"nothing is published in {folder}, the directory of --data-dir or SHOP_DIRECTORY_DATA_DIR" in ended.stderr


_SHOPS: Final = {"red": 200, "blue": 150}


def _documents(colour: str, directory: Path) -> Documents:
    """Shops of one colour: the same ids as the other's, and names, number and categories of its own."""
    return projected(
        [
            shop(f"{colour} lamp {number}", f"lamp{number}.internal", id=f"s{number}", categories=[f"{colour}-lamps"])
            for number in range(_SHOPS[colour])
        ],
        directory / colour,
    )


async def _seen(snapshot: Snapshot) -> tuple[set[str], int, list[tuple[str, int]]]:
    """The colours of the shops, their number, and the counts of the categories."""
    found = await find(snapshot, "lamp qqxx", offset=100, limit=50)
    suggested = await suggest(snapshot, "lmap", limit=20)
    known = await snapshot.shop("lamp7.internal")
    assert known is not None
    shops = [known.name, *(one.name for one in found.shops), *(one.shop.name for one in suggested.shops)]
    listed = [(category.slug, category.count) for category in await snapshot.categories()]
    return {name.split()[0] for name in shops}, found.total, listed


def _all(colour: str) -> tuple[set[str], int, list[tuple[str, int]]]:
    return {colour}, _SHOPS[colour], [(f"{colour}-lamps", _SHOPS[colour])]


@pytest.mark.rule("C2.one_generation", "G1")
async def test_a_generation_in_use_answers_wholly_or_is_gone_when_it_is_removed(engine: Engine, tmp_path: Path) -> None:
    documents = {colour: _documents(colour, tmp_path) for colour in _SHOPS}
    publish(engine.sink, documents["red"])
    held = await engine.backend.snapshot()
    publish(engine.sink, documents["blue"])
    assert await _seen(held) == _all("red")

    publish(engine.sink, documents["red"])
    publish(engine.sink, documents["blue"])
    assert [(category.slug, category.count) for category in await held.categories()] == [("red-lamps", 200)]
    # Its typeahead is in the process.
    assert {found.shop.name.split()[0] for found in (await suggest(held, "lmap")).shops} == {"red"}
    if isinstance(engine.sink, EmbeddedSink):
        assert await _seen(held) == _all("red")
    else:
        for question in (find(held, "lamp"), find(held, "lamp qqxx"), held.shop("lamp7.internal")):
            with pytest.raises(GenerationGone):
                await question
    assert await _seen(await engine.backend.refresh()) == _all("blue")


@pytest.mark.rule("C2.one_generation")
async def test_a_generation_that_was_removed_before_it_was_read_is_gone(engine: Engine, tmp_path: Path) -> None:
    documents = {colour: _documents(colour, tmp_path) for colour in _SHOPS}
    stale = publish(engine.sink, documents["red"])
    for _ in range(2):
        publish(engine.sink, documents["blue"])
    browse = Plan("shops", ((0, MATCH_ALL),))
    for kind in DOCUMENTS:
        with pytest.raises(GenerationGone):
            await engine.reader.search(stale, (SearchRequest(Plan(kind, browse.tiers), 1, total=True),))
        with pytest.raises(GenerationGone):
            await engine.reader.search(stale, (SearchRequest(Plan(kind, browse.tiers), 0, total=True),) * 2)
    live = await engine.reader.live()
    (page,) = await engine.reader.search(live, (SearchRequest(browse, 1, total=True),))
    assert page.total == _SHOPS["blue"]


@pytest.mark.rule("F7")
async def test_pages_by_position_go_on_over_swaps_hidden_shops_and_a_rollback(engine: Engine, tmp_path: Path) -> None:
    """A shop that keeps its place is on one page; one that moved over the position repeats, or is missing."""
    shops = [
        shop(f"Lamp {number}", f"lamp{number}.internal", id=f"s{number:03d}", popularity=(number % 40) / 8)
        for number in range(400)
    ]
    order = _order(shops)
    hidden, moved_up, moved_down = order[99], order[150], order[20]
    popularity = {moved_up: 90.0, moved_down: 0.0}
    changed = [one | {"popularity": popularity.get(one["id"], one["popularity"])} for one in shops]
    changed = [one for one in changed if one["id"] != hidden]
    before, after = projected(shops, tmp_path / "before"), projected(changed, tmp_path / "after")

    async def page(position: Position | None) -> Found:
        return await find(await engine.backend.refresh(), "lamp", limit=100, after=position)

    first = publish(engine.sink, before)
    pages = [await page(None)]
    second = publish(engine.sink, after)
    pages.append(await page(pages[0].last))
    engine.sink.publish(first.generation, second.generation)
    pages += [await page(pages[1].last), await page(pages[0].last)]
    engine.sink.publish(second.generation, first.generation)
    pages.append(await page(pages[2].last))

    found = [[one.id for one in each.shops] for each in pages]
    rest = [key for key in order[100:] if key != moved_up]
    assert found[:4] == [order[:100], rest[:100], rest[100:200], order[100:200]]
    assert found[4] == [key for key in _order(changed) if key in rest[200:] or key == moved_down]
    assert [each.total for each in pages] == [400, 399, 400, 400, 399]


def _order(shops: Iterable[Mapping[str, Any]]) -> list[str]:
    return [one["id"] for one in sorted(shops, key=lambda one: (-one["popularity"], one["id"]))]
