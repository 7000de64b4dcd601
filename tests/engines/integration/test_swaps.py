"""Generations that are replaced and removed while they are read: no answer mixes two of them (C2, G1)."""

from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from indexer.sinks.embedded.sink import EmbeddedSink
from service.search.engine import SearchRequest
from service.search.failures import GenerationGone
from service.search.plan import MATCH_ALL, Plan
from service.search.protocol import Snapshot
from tests.engines.conftest import Engine
from tests.engines.integration.generations import Documents, projected, publish
from tests.rules.backends.asking import find, suggest
from tests.support.catalogues import shop

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
