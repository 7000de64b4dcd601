"""Opening what belongs to a stamp: in the background, once, and never in the way of an answer."""

import asyncio
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from index_mappings.typeahead import Moment
from indexer.sinks import embedded_typeahead
from service.search import typeahead
from service.search.embedded import TantivyEngine
from service.search.embedded_typeahead import Typeaheads
from service.search.planned import PlannedSnapshot, snapshot_of
from service.search.protocol import SuggestQuery
from service.search.typeahead import TextsFile, Typeahead
from tests.embedded_engines import by_texts
from tests.typeahead.generation import Changed
from tests.typeahead.kept import Kept, document, forms_of

SHOPS = [
    document("s1", "Kestrel Bird", popularity=3.0),
    document("s2", "Kestrel", popularity=1.0, countries=["DE"]),
    document("s3", "Wren & Owl", popularity=2.0),
]
QUERIES = [
    SuggestQuery(text, country, limit)
    for text in ("k", "kest", "kesterl", "owl wren", "bird kestrel", "kstrel brid", "kestrel bord", "zz", "", "?")
    for country in (None, "FR")
    for limit in (1, 20)
]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path, SHOPS)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="service.search.embedded_typeahead"):
        yield caplog


def test_the_first_to_ask_does_not_wait_and_is_told_that_there_is_none_yet(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_open, opening = Event(), Event()
    put_together = Typeaheads._put_together

    def slowly(self: Typeaheads, directory: Path, moment: Moment) -> Typeahead:
        opening.set()
        assert may_open.wait(60)
        return put_together(self, directory, moment)

    monkeypatch.setattr(Typeaheads, "_put_together", slowly)
    typeaheads = Typeaheads(kept.root)
    begun = time.monotonic()
    assert typeaheads.of(kept.stamp) is None
    assert opening.wait(60)
    # Nor do those who ask while it is being opened, by one thread for all of them.
    opening.clear()
    assert [typeaheads.of(kept.stamp) for _ in range(100)] == [None] * 100
    assert time.monotonic() - begun < 30
    assert not opening.is_set()
    may_open.set()
    opened = typeaheads.opened(kept.stamp)
    assert opened is not None
    assert typeaheads.of(kept.stamp) is opened
    assert [one.shop.id for one in opened.best(forms_of("kest"), None, 20)] == ["s1", "s2"]


def test_another_stamp_of_the_generation_has_the_same_base_open_until_there_is_a_new_one(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    class Noted(TextsFile):
        def __init__(self, path: Path) -> None:
            read.append(path.name)
            super().__init__(path)

    monkeypatch.setattr(typeahead, "TextsFile", Noted)
    typeaheads = Typeaheads(kept.root)
    first, stamp = typeaheads.opened(kept.stamp), kept.stamp
    kept.change([document("s4", "Kestrel Four")], ["s1"])
    second = typeaheads.opened(kept.stamp)
    assert read == ["base-1.texts", "changes-2.texts"]
    monkeypatch.setattr(embedded_typeahead, "_FEW", 0)
    kept.change(removed=["s2"])
    third = typeaheads.opened(kept.stamp)
    assert read == ["base-1.texts", "changes-2.texts", "base-3.texts"]
    # Each says what its stamp says, also while a later one is open.
    assert typeaheads.of(stamp) is first
    answers = [
        [one.shop.id for one in opened.best(forms_of("kest"), None, 20)]
        for opened in (first, second, third)
        if opened is not None
    ]
    assert answers == [["s1", "s2"], ["s2", "s4"], ["s4"]]


def test_that_nothing_belongs_to_a_stamp_is_told_once(kept: Kept, logged: pytest.LogCaptureFixture) -> None:
    typeaheads = Typeaheads(kept.root)
    later = replace(kept.stamp, sequence=9)
    assert [typeaheads.opened(later) for _ in range(5)] == [None] * 5
    assert [typeaheads.of(later) for _ in range(5)] == [None] * 5
    assert [(record.levelname, record.getMessage()) for record in logged.records] == [
        ("INFO", f"no typeahead belongs to sequence 9 of {kept.stamp.generation}")
    ]
    # It keeps no other stamp from being opened.
    assert typeaheads.opened(kept.stamp) is not None


@pytest.mark.parametrize("broken", ["base", "changes", "moment", "no moment", "no machine code", "version"])
async def test_what_cannot_be_used_is_told_once_and_the_index_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: pytest.LogCaptureFixture, broken: str
) -> None:
    world = Changed(tmp_path, SHOPS)
    world.change([document("s4", "Kestrel Four")], ["s1"])
    right = await world.suggested(QUERIES)
    logged.clear()
    if broken in {"base", "changes"}:
        path = world.directory / {"base": "base-1.texts", "changes": "changes-2.texts"}[broken]
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
    elif broken == "version":
        monkeypatch.setattr("index_mappings.typeahead.TYPEAHEAD_VERSION", 99)
    elif broken == "no machine code":
        monkeypatch.setitem(sys.modules, "service.search.typeahead", None)
    else:
        (world.directory / "at-2.json").write_text({"moment": "{", "no moment": "[1]"}[broken])
    engine = TantivyEngine(tmp_path)
    assert engine._typeaheads.opened(world.stamp) is None
    snapshot = await snapshot_of(engine, world.stamp)
    assert [snapshot.suggest_at_once(query) for query in QUERIES] == right
    assert [(record.levelname, record.getMessage()) for record in logged.records] == [
        ("ERROR", f"the typeahead of sequence 2 of {world.stamp.generation} cannot be used")
    ]
    await engine.close()


async def test_answers_are_the_same_before_it_is_open_and_after(tmp_path: Path) -> None:
    world = Changed(tmp_path, SHOPS)
    right = await world.suggested(QUERIES)
    engine = TantivyEngine(tmp_path)
    snapshot = await snapshot_of(engine, world.stamp)

    async def answers(snapshot: PlannedSnapshot) -> bool:
        await asyncio.sleep(0)
        return [snapshot.suggest_at_once(query) for query in QUERIES] == right

    assert await answers(snapshot)
    by_texts(engine, world.stamp)
    assert await answers(snapshot)
    await engine.close()


def test_no_more_stamps_are_kept_open_than_have_readers(kept: Kept) -> None:
    typeaheads = Typeaheads(kept.root)
    stamps = [kept.stamp]
    for number in range(4):
        kept.change([document(f"n{number}", f"Kestrel {number}")])
        stamps.append(kept.stamp)
        assert typeaheads.opened(kept.stamp) is not None
    assert len(typeaheads._of) == len(typeaheads._opening) == 3
    # One that was let go of is opened anew, while its files are there.
    assert typeaheads.opened(stamps[-3]) is not None
    assert typeaheads.opened(stamps[0]) is None
