"""Changes that arrive while a build runs, and what they make of categories and of facts (G3, V1)."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from index_mappings.generations import Stamp
from indexer.jobs.build import BuildOptions, BuildSummary, build
from indexer.jobs.shop_visibility import set_visibility
from indexer.records.problems import ProblemLog
from indexer.sinks.protocol import GenerationEditor, GenerationWriter
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import NumberedRecord
from service.parts import open_search
from service.tools.find_shop import FIND_SHOP
from shop_directory.search.protocol import FindQuery, SearchBackend, Snapshot
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.conftest import Engine
from tests.engines.following.followed import (
    BreakingEditor,
    FollowedIndex,
    Scanned,
    Statement,
    Story,
    by_type,
    how_many,
    lamp_world,
    now,
    right,
    scanned,
)
from tests.rules.backends.asking import call
from tests.support.catalogues import coupon, delete, shipping, shop, upsert
from tests.support.memory_sink import MemorySink

_CHANGES = how_many(300)


class SlowCatalogue(NdjsonCatalogue):
    def __init__(self, path: Path, between: Callable[[], None]) -> None:
        super().__init__(path)
        self._between = between

    def records(self, kind: str, problems: ProblemLog, advance: Callable[[int], None]) -> Iterator[NumberedRecord]:
        for read in super().records(kind, problems, advance):
            self._between()
            yield read


class _Watching:
    """Hides the lamp shop when a build has begun to read, and slows reading until the live generation has lost it."""

    def __init__(self, followed: FollowedIndex, hide: Callable[[], None]) -> None:
        self._followed, self._hide = followed, hide
        self._before = followed.live
        self.records = 0
        self.seen: Scanned | None = None
        self.risen: Stamp | None = None

    def __call__(self) -> None:
        self.records += 1
        if self.records == 2:
            self._hide()
        if self.seen is None and self.records > 2:
            time.sleep(0.2)
            live = self._followed.live
            if live.sequence > self._before.sequence:
                self.seen, self.risen = self._followed.scan(), live


@pytest.mark.parametrize("by_command", [False, True])
@pytest.mark.rule("V3", "G3")
def test_a_shop_hidden_while_a_slow_source_is_read_leaves_the_live_generation_before_the_build_ends(
    engine: Engine, tmp_path: Path, *, by_command: bool
) -> None:
    catalogue = lamp_world()
    (row,) = catalogue["trust"]
    catalogue["trust"] = [row, *({**row, "shop_id": f"unknown-{number}"} for number in range(60))]
    followed = FollowedIndex(tmp_path / "followed", engine.sink, catalogue)
    first = followed.build().stamp
    hiding = _Hiding(followed)
    watching = _Watching(followed, hiding.start if by_command else lambda: followed.append([now("under_review", 2)]))
    summary = _build(followed, watching)
    if by_command:
        hiding.join()
        assert hiding.marked
    without = right(tmp_path / "right", _statements(lamp_world(known=False)))

    assert (watching.seen, followed.scan()) == (scanned(without), scanned(without))
    assert watching.risen is not None
    assert (watching.risen.generation, watching.risen.sequence) == (first.generation, first.sequence + 1)
    assert summary.stamp.generation != first.generation
    assert watching.records > 2 + 4


class _Hiding(threading.Thread):
    def __init__(self, followed: FollowedIndex) -> None:
        super().__init__(name="hiding")
        self._followed = followed
        self.marked = False

    def run(self) -> None:
        _, (status,) = set_visibility(
            self._followed.sink, self._followed.states, ["lumen.internal"], public=False, wait=60
        )
        self.marked = status.marked


@pytest.mark.parametrize("step", ["sealing", "acceptance"])
@pytest.mark.rule("V3", "G3")
def test_a_shop_hidden_during_a_long_step_of_a_build_leaves_the_live_generation_meanwhile(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    followed = FollowedIndex(tmp_path / "followed", engine.sink, lamp_world())
    first = followed.build().stamp
    seen: list[Scanned] = []

    def hide_meanwhile(_: Stamp) -> None:
        followed.append([now("under_review", 2)])
        end = time.monotonic() + 30
        while followed.live.sequence == first.sequence and time.monotonic() < end:
            time.sleep(0.1)
        seen.append(followed.scan())

    def begin(generation: str, begin: Callable[[str], GenerationWriter] = engine.sink.begin) -> GenerationWriter:
        writer = begin(generation)
        monkeypatch.setattr(writer, "seal", partial(sealed_later, writer.seal))
        return writer

    def sealed_later(seal: Callable[[Stamp], Stamp], stamp: Stamp) -> Stamp:
        hide_meanwhile(stamp)
        return seal(stamp)

    if step == "sealing":
        monkeypatch.setattr(engine.sink, "begin", begin)
    _build(followed, acceptance=hide_meanwhile if step == "acceptance" else None)
    without = right(tmp_path / "right", _statements(lamp_world(known=False)))
    assert [*seen, followed.scan()] == [scanned(without)] * 2


@pytest.mark.rule("G3")
def test_every_file_of_changes_that_is_replaced_during_a_build_is_in_what_it_publishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = FollowedIndex(tmp_path / "followed", MemorySink(), lamp_world())
    shops = [upsert("shops", shop(name, id=name.lower()), 1) for name in ("Cup", "Mug", "Jug")]

    def sealed_later(seal: Callable[[Stamp], Stamp], stamp: Stamp) -> Stamp:
        for line in shops:
            followed.changes.unlink(missing_ok=True)
            followed.append([line])
            time.sleep(1.7)  # longer than between two looks at the file
        return seal(stamp)

    def begin(generation: str, begin: Callable[[str], GenerationWriter] = followed.sink.begin) -> GenerationWriter:
        writer = begin(generation)
        monkeypatch.setattr(writer, "seal", partial(sealed_later, writer.seal))
        return writer

    monkeypatch.setattr(followed.sink, "begin", begin)
    assert _build(followed).changes.applied == len(shops)


class _Appending(threading.Thread):
    def __init__(self, followed: FollowedIndex, statements: list[Statement]) -> None:
        super().__init__(name="appending")
        self._followed = followed
        self._left = list(statements)
        self._stop_asked = threading.Event()
        self.count = 0

    def run(self) -> None:
        while self._left and not self._stop_asked.wait(0.005):
            self._followed.append_statements([self._left.pop(0)])
            self.count += 1

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()


@pytest.mark.rule("G3")
def test_no_change_that_arrives_during_a_build_is_lost_and_the_rest_follows(engine: Engine, tmp_path: Path) -> None:
    chance = Random(11)  # noqa: S311 - a repeatable test
    story = Story(chance, shops=max(12, _CHANGES // 20))
    statements = story.statements(_CHANGES)
    catalogue = story.catalogue(statements)
    arrivals = story.arrivals(statements)
    followed = FollowedIndex(tmp_path / "followed", engine.sink, by_type(catalogue))
    followed.build()
    appending = _Appending(followed, arrivals)
    appended_when_verified: list[int] = []

    def acceptance(_: Stamp) -> None:
        appended_when_verified.append(appending.count)

    appending.start()
    try:
        _build(followed, lambda: time.sleep(0.004), acceptance)
    finally:
        appending.stop()
    taken = _lines_taken(followed)
    assert 0 < appended_when_verified[0] <= taken <= appending.count
    assert followed.scan() == scanned(right(tmp_path / "published", [*catalogue, *arrivals[:taken]]))

    followed.append_statements(arrivals[appending.count :])
    followed.drain()
    assert _lines_taken(followed) == len(arrivals)
    assert followed.scan() == scanned(right(tmp_path / "right", [*catalogue, *arrivals]))


def _build(
    followed: FollowedIndex,
    between: Callable[[], None] = lambda: None,
    acceptance: Callable[[Stamp], None] | None = None,
) -> BuildSummary:
    options = BuildOptions(most_shrink=1.0, acceptance=acceptance)
    return build(SlowCatalogue(followed.catalogue, between), followed.sink, followed.states, options)


def _lines_taken(followed: FollowedIndex) -> int:
    with followed.states.open(followed.live.generation) as state:
        assert state.position is not None
        position: dict[str, Any] = json.loads(state.position)
        return int(position["line"])


def _statements(catalogue: dict[str, list[dict[str, Any]]]) -> list[Statement]:
    return [
        Statement(kind, f"{number}", 1, line) for kind, lines in catalogue.items() for number, line in enumerate(lines)
    ]


LAMP: Final = {**shop("Lamp", id="lamp", categories=["lighting"]), "version": 1}
OWL: Final = {**shop("Owl", id="owl", categories=["falconry"], visibility="under_review"), "version": 1}


def _named(version: int, slug: str, **names: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return upsert("categories", {"slug": slug, **names}, version)


def _categories(followed: FollowedIndex) -> dict[str, tuple[str, list[str]]]:
    return {slug: (stored["name"], stored["words"]) for slug, stored in followed.scan()["categories"].items()}


async def _of_the_last_step(backend: SearchBackend, followed: FollowedIndex) -> Snapshot:
    async with asyncio.timeout(10):
        # The former typeahead answers until that of the new stamp is open.
        while (snapshot := await backend.refresh()).stamp.sequence < followed.live.sequence:
            await asyncio.sleep(0.05)
    return snapshot


@pytest.mark.rule("G3", "C1", "M5", "M10")
async def test_readers_find_the_new_names_after_one_micro_batch(engine: Engine, tmp_path: Path) -> None:
    followed = FollowedIndex(tmp_path, engine.sink, {"shops": [LAMP]})
    followed.build()
    backend = open_search(engine.settings)
    try:
        before = await (await backend.refresh()).find(FindQuery("leuchten", (), (), 0, 5))
        assert before.total == 0
        followed.append([_named(1, "lighting", name="Lamps", names={"de": "Leuchten"})])
        followed.step()
        snapshot = await _of_the_last_step(backend, followed)
        found = await snapshot.find(FindQuery("leuchten", (), (), 0, 5))
        suggested = snapshot.suggest(SuggestQuery.of("leuct", None, 5))
        assert ([one.id for one in found.shops], [one.name for one in suggested.categories]) == (["lamp"], ["Lamps"])
    finally:
        await backend.close()


@pytest.mark.rule("F1", "F3", "G3")
async def test_the_facts_by_which_a_shop_is_found_follow_its_coupons_and_its_shipping(
    engine: Engine, tmp_path: Path
) -> None:
    followed = FollowedIndex(tmp_path, engine.sink, {"shops": [LAMP], "shipping": [shipping("lamp", version=1)]})
    followed.build()
    backend = open_search(engine.settings)
    changes = [
        ([upsert("coupons", coupon("SAVE", "lamp", id="c1"), 2)], (0, 1)),
        ([upsert("shipping", shipping("lamp", destinations=["AT"]), 2)], (1, 0)),
        ([upsert("coupons", coupon("SAVE", "lamp", id="c1", valid_until="2020-01-01"), 3)], (0, 0)),
        ([upsert("coupons", coupon("MORE", "lamp", id="c2"), 2), delete("coupons", "c1", 4)], (1, 0)),
        ([upsert("shops", {**LAMP, "visibility": "under_review"}, 2)], (0, 0)),
        ([upsert("shops", LAMP, 3)], (1, 0)),
        ([delete("shipping", "lamp", 3)], (0, 1)),
    ]
    try:
        for lines, expected in changes:
            followed.append(lines)
            followed.step()
            snapshot = await _of_the_last_step(backend, followed)
            found = await call(snapshot, FIND_SHOP, query="", ships_to="AT", has_code=True)
            assert (found["total_count"], found["unsettled_count"]) == expected, lines
    finally:
        await backend.close()


@pytest.mark.rule("M3", "G3")
async def test_a_shop_is_found_next_to_the_names_of_many_removed_ones(engine: Engine, tmp_path: Path) -> None:
    # More than an engine looks at to see whether there is any, and all before the one that is left.
    others = [shop(f"Restaurant A{n}", f"a{n}.test", id=f"r{n}", version=1) for n in range(100, 180)]
    left = shop("Restaurant Zum Hof", "zum-hof.test", id="hof", version=1)
    # Which has the word only as a part, and would come first in the same tier.
    part = shop("Xrestaurants", "part.test", id="part", popularity=0.9, version=1)
    followed = FollowedIndex(tmp_path, engine.sink, {"shops": [*others, left, part]})
    followed.build()
    followed.append([delete("shops", one["id"], 2) for one in others])
    followed.step()
    backend = open_search(engine.settings)
    try:
        snapshot = await _of_the_last_step(backend, followed)
        found = await snapshot.find(FindQuery("restaurant", (), (), 0, 5))
        assert [one.id for one in found.shops] == ["hof", "part"]
    finally:
        await backend.close()


class _Recording(BreakingEditor):
    def __init__(self, editor: GenerationEditor) -> None:
        super().__init__(editor)
        self.slugs: set[str] = set()

    def write(self, kind: str, documents: Any, removed: Any) -> int:  # noqa: ANN401 - as of the editor
        if kind == "categories":
            self.slugs.update(document.id for document in documents)
            self.slugs.update(removed)
        return super().write(kind, documents, removed)


@pytest.mark.rule("V1", "G3")
def test_no_engine_receives_a_category_before_a_public_shop_carries_it(tmp_path: Path) -> None:
    followed = FollowedIndex(tmp_path, MemorySink(), {"shops": [LAMP, OWL]})
    followed.build()
    editors: list[_Recording] = []

    def around(editor: GenerationEditor) -> GenerationEditor:
        editors.append(_Recording(editor))
        return editors[-1]

    def step(*lines: dict[str, Any]) -> set[str]:
        followed.append(lines)
        with followed.follower(around) as follower:
            follower.step()
        return editors[-1].slugs

    assert step(_named(1, "falconry", names={"de": "Beizjagd"})) == set()
    assert step(_named(2, "falconry", names={"de": "Beizjagden"}), delete("categories", "nobody", 2)) == set()
    assert step(upsert("shops", {**OWL, "visibility": "public"}, 2)) == {"falconry"}
    assert _categories(followed)["falconry"] == ("Falconry", ["beizjagden", "falconry"])
    # Hiding the shop and naming its category in one micro-batch removes all of it.
    assert step(upsert("shops", OWL, 3), _named(3, "falconry", synonyms=["hawks"])) == {"falconry"}
    assert "falconry" not in _categories(followed)
    assert step(delete("categories", "falconry", 4)) == set()
