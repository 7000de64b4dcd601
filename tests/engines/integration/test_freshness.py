"""The live stamp is looked up often enough, and trusted for two seconds and no longer (C1, G4)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.embedded import pointer_path, stamp_path, to_checked_json
from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, first_stamp, index_name
from service.search.failures import BackendUnavailable, NotReadable
from service.search.planned_backend import LiveStamp
from tests.engines.conftest import Engine, OpenSearchLocation
from tests.engines.integration.generations import projected, publish
from tests.rules.backends.asking import find, names
from tests.rules.limits.clocks import HandClock
from tests.support.catalogues import shop

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


@pytest.mark.rule("C1")
async def test_a_refresh_never_answers_from_the_cache() -> None:
    published = Published(_FIRST)
    live = LiveStamp(published, HandClock())
    assert await live.current() == _FIRST
    published.says = _SECOND
    assert (await live.reload(), await live.current(), published.asked) == (_SECOND, _SECOND, 2)


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
