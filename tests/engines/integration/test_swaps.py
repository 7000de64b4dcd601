"""Twenty generations published one after the other while they are read: no answer mixes two of them (C2, G1)."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from indexer.sinks.embedded.sink import EmbeddedSink
from service.search.engine import SearchRequest
from service.search.failures import GenerationGone
from service.search.plan import MATCH_ALL, Plan
from service.search.protocol import SearchBackend, Snapshot
from tests.engines.conftest import Engine
from tests.engines.integration.generations import Documents, projected, publish, replace_live, sealed
from tests.rules.backends.asking import find, suggest
from tests.support.catalogues import shop

_SWAPS: Final = 20
_READERS: Final = 4
_SHOPS: Final = {"red": 200, "blue": 150}

# What was seen in one answer: the colours of its shops, its totals and the counts of its categories.
Seen = tuple[set[str], set[int], set[tuple[str, int]]]


@dataclass
class _Record:
    """What was published and what was answered."""

    colours: dict[str, str] = field(default_factory=dict)
    wrong: list[tuple[str, str, Seen]] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    swaps: int = 0
    swapped_while_asking: int = 0
    retries: int = 0
    done: bool = False
    wanted: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    reading: asyncio.Event = field(default_factory=asyncio.Event)

    async def next_answers(self, count: int) -> None:
        """Waits until so many more answers were read."""
        self.wanted = self.asked.total() + count
        self.enough.clear()
        await self.enough.wait()


def _documents(colour: str, directory: Path) -> Documents:
    """Shops of one colour: the same ids as the other's, and names, number and categories of its own."""
    return projected(
        [
            shop(f"{colour} lamp {number}", f"lamp{number}.internal", id=f"s{number}", categories=[f"{colour}-lamps"])
            for number in range(_SHOPS[colour])
        ],
        directory / colour,
    )


async def _search(snapshot: Snapshot) -> Seen:
    found = await find(snapshot, "lamp", offset=100, limit=50)
    return {found_shop.name.split()[0] for found_shop in found.shops}, {found.total}, set()


async def _search_in_two_round_trips(snapshot: Snapshot) -> Seen:
    """Nothing has the whole query: a second look finds the unknown word, and a third what is left."""
    found = await find(snapshot, "lamp qqxx", limit=100)
    assert found.ignored == ("qqxx",)
    return {found_shop.name.split()[0] for found_shop in found.shops}, {found.total}, set()


async def _suggestions(snapshot: Snapshot) -> Seen:
    """Misspelt, so that two searches make up the answer; the category is read with the stamp."""
    suggested = await suggest(snapshot, "lmap", limit=20)
    assert len(suggested.shops) == 20
    return {suggestion.shop.name.split()[0] for suggestion in suggested.shops}, set(), set()


async def _categories(snapshot: Snapshot) -> Seen:
    listed = {(category.slug, category.count) for category in await snapshot.categories()}
    typed = {(category.slug, category.count) for category in (await suggest(snapshot, "lamp")).categories}
    return set(), set(), listed | typed


async def _one_shop(snapshot: Snapshot) -> Seen:
    known = await snapshot.shop("lamp7.internal")
    only_red = await snapshot.shop("s170")
    assert known is not None
    return {known.name.split()[0]}, {200 if only_red else 150}, set()


async def _all_of_it(snapshot: Snapshot) -> Seen:
    """A larger piece of work on one snapshot: more time for a swap to come between."""
    parts = [await ask(snapshot) for ask in (_search, _categories, _one_shop, _suggestions)]
    return set().union(*(p[0] for p in parts)), set().union(*(p[1] for p in parts)), set().union(*(p[2] for p in parts))


_QUESTIONS: Final = (_search, _search_in_two_round_trips, _suggestions, _categories, _one_shop, _all_of_it)


async def _asked(
    backend: SearchBackend, question: Callable[[Snapshot], Awaitable[Seen]], record: _Record
) -> tuple[str, Seen]:
    """One answer and the generation of its stamp, asked as the service asks: once more when the generation is gone."""
    try:
        snapshot = await backend.snapshot()
        return snapshot.stamp.generation, await question(snapshot)
    except GenerationGone:
        record.retries += 1
        snapshot = await backend.refresh()
        return snapshot.stamp.generation, await question(snapshot)


def _expected(question: Callable[[Snapshot], Awaitable[Seen]], colour: str) -> Seen:
    colours: set[str] = set() if question is _categories else {colour}
    totals: set[int] = set() if question in (_suggestions, _categories) else {_SHOPS[colour]}
    listed = {(f"{colour}-lamps", _SHOPS[colour])} if question in (_categories, _all_of_it) else set()
    return colours, totals, listed


async def _read(backend: SearchBackend, record: _Record, first: int) -> None:
    turn = first
    while not record.done:
        await record.reading.wait()
        question = _QUESTIONS[turn % len(_QUESTIONS)]
        turn += 1
        before = record.swaps
        generation, seen = await _asked(backend, question, record)
        record.swapped_while_asking += record.swaps != before
        record.asked[question.__name__] += 1
        if record.asked.total() >= record.wanted:
            record.enough.set()
        if seen != _expected(question, record.colours[generation]):
            record.wrong.append((generation, question.__name__, seen))


async def _swap(engine: Engine, documents: dict[str, Documents], record: _Record) -> None:
    for number in range(_SWAPS):
        colour = ("blue", "red")[number % 2]
        # Nothing that is read changes while a generation is written, so there is nothing to read.
        record.reading.clear()
        stamp, writer = await asyncio.to_thread(sealed, engine.sink, documents[colour])
        record.colours[stamp.generation] = colour
        record.reading.set()
        await record.next_answers(_READERS)
        # OpenSearch loses the older generation at once, so that readers are left with one that is gone. The embedded
        # engine must not lose it between the reading of its pointer and of its stamp.
        keep = isinstance(engine.sink, EmbeddedSink)
        await asyncio.to_thread(replace_live, engine.sink, stamp, writer, keep_previous=keep)
        record.swaps += 1
        # An operator's prune leaves readers a minute for one answer; here they get the time of a few.
        await record.next_answers(2 * _READERS)
    record.done = True


@pytest.mark.slow
@pytest.mark.rule("C2.one_generation", "G1", "E3")
async def test_no_answer_mixes_two_generations_during_twenty_swaps(engine: Engine, tmp_path: Path) -> None:
    documents = {colour: _documents(colour, tmp_path) for colour in _SHOPS}
    record = _Record()
    record.colours[publish(engine.sink, documents["red"]).generation] = "red"

    async with asyncio.TaskGroup() as tasks:
        for reader in range(_READERS):
            tasks.create_task(_read(engine.backend, record, reader))
        tasks.create_task(_swap(engine, documents, record))

    assert record.wrong == []
    assert record.swaps == _SWAPS
    assert set(record.asked) == {question.__name__ for question in _QUESTIONS}
    # The swaps did come between. The embedded engine keeps what it reads open, the other has to be asked again.
    assert record.swapped_while_asking > 0
    assert isinstance(engine.sink, EmbeddedSink) or record.retries > 0


@pytest.mark.rule("C2.one_generation", "G1")
async def test_a_generation_in_use_answers_wholly_or_is_gone_when_it_is_removed(engine: Engine, tmp_path: Path) -> None:
    documents = {colour: _documents(colour, tmp_path) for colour in _SHOPS}
    publish(engine.sink, documents["red"])
    held = await engine.backend.snapshot()
    publish(engine.sink, documents["blue"])
    assert await _all_of_it(held) == _expected(_all_of_it, "red")

    publish(engine.sink, documents["red"])
    publish(engine.sink, documents["blue"])
    assert [(category.slug, category.count) for category in await held.categories()] == [("red-lamps", 200)]
    if isinstance(engine.sink, EmbeddedSink):
        assert await _all_of_it(held) == _expected(_all_of_it, "red")
    else:
        # Its typeahead is in the process.
        assert await _suggestions(held) == _expected(_suggestions, "red")
        for question in (_search, _search_in_two_round_trips, _one_shop):
            with pytest.raises(GenerationGone):
                await question(held)
    assert await _all_of_it(await engine.backend.refresh()) == _expected(_all_of_it, "blue")


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
