"""Going back to the previous generation: what the bad build brought is gone, and nothing hidden since is shown (G2)."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from index_mappings.generations import Stamp
from indexer.jobs.build import BuildOptions, build
from indexer.jobs.change_applier import ChangeApplier
from indexer.jobs.retention import prune
from indexer.jobs.rollback import roll_back
from indexer.jobs.update import ChangeCounts
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Role, Sink
from indexer.sources.changes.file import ChangeFile
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import ChangeSource
from indexer.state.state import StateError
from indexer.state.states import States
from tests.engines.integration.conftest import Engine
from tests.rules.backends.asking import find, names
from tests.support.catalogues import coupon, offer, shop, write_catalogue_directory


class Catalogue:
    """A catalogue that is written anew for every build, its changes, and the states of its generations."""

    def __init__(self, folder: Path, sink: Sink) -> None:
        self.folder = folder / "catalogue"
        self.sink = sink
        self.states = States(folder / "state", "the test's")

    def build(self, *shops: dict[str, Any], **others: list[dict[str, Any]]) -> Stamp:
        write_catalogue_directory(self.folder, shops=shops, **others)
        options = BuildOptions(allow_shrink=True)
        return build(NdjsonCatalogue(self.folder), self.sink, self.states, options).stamp

    def change(self, **change: Any) -> None:  # noqa: ANN401 - JSON values
        with (self.folder / "changes.ndjson").open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(change)}\n")

    def changes(self) -> ChangeFile:
        return ChangeFile(self.folder / "changes.ndjson")

    def follow(self, changes: ChangeSource | None = None) -> ChangeCounts:
        live = self.sink.live()
        assert live is not None
        editor, letters = self.sink.edit(live.generation), DeadLetters(self.states.dead_letters)
        with self.states.open(live.generation) as state:
            done = ChangeApplier(state, editor, changes or self.changes(), letters, lambda: None).drain()
        editor.close()
        return done

    def held(self, kind: str) -> list[str]:
        live = self.sink.live()
        assert live is not None
        editor = self.sink.edit(live.generation)
        return [document_id for document_id, _ in editor.scan(kind)]


@pytest.fixture
def catalogue(engine: Engine, tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path, engine.sink)


def _renamed(line: dict[str, Any], name: str) -> dict[str, Any]:
    return {**line, "name": name}


LAMP, BOOK, TEAPOT = (shop(name, id=name.lower()) for name in ("Lamp", "Book", "Teapot"))


@pytest.mark.rule("G2")
async def test_a_rollback_brings_back_what_a_bad_build_lost_and_keeps_the_bad_one_for_another(
    engine: Engine, catalogue: Catalogue
) -> None:
    good = catalogue.build(LAMP, BOOK, coupons=[coupon("SAVE", "book")])
    bad = catalogue.build(_renamed(LAMP, "Broken"), coupons=[])
    done = roll_back(engine.sink, catalogue.states, None)
    assert (done.stamp.generation, done.replaced, dict(done.stamp.counts)) == (
        good.generation,
        bad.generation,
        {"shops": 2, "categories": 1, "coupons": 1, "offers": 0, "facts": 2},
    )
    snapshot = await engine.backend.refresh()
    assert snapshot.stamp == done.stamp == engine.sink.live()
    assert names((await find(snapshot, "")).shops) == ["Book", "Lamp"]
    assert {found.name: found.role for found in engine.sink.generations()} == {
        good.generation: Role.LIVE,
        bad.generation: Role.PREVIOUS,
    }
    assert roll_back(engine.sink, catalogue.states, None).stamp.generation == bad.generation
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Broken"]


@pytest.mark.rule("G2", "V1")
async def test_a_shop_that_the_later_catalogue_hides_does_not_come_back(engine: Engine, catalogue: Catalogue) -> None:
    others = {
        "coupons": [coupon("SAVE", "book", id="c1"), coupon("LESS", "lamp", id="c2")],
        "offers": [offer("o1", "book")],
    }
    catalogue.build(LAMP, BOOK, **others)
    catalogue.build({**BOOK, "visibility": "under_review"}, TEAPOT, **others)
    done = roll_back(engine.sink, catalogue.states, None)
    assert dict(done.stamp.counts) == {"shops": 1, "categories": 1, "coupons": 1, "offers": 0, "facts": 1}
    assert [catalogue.held(kind) for kind in ("shops", "facts", "coupons", "offers")] == [
        ["lamp"],
        ["lamp"],
        ["c2"],
        [],
    ]
    snapshot = await engine.backend.refresh()
    assert (await snapshot.shop("book"), await snapshot.offer("o1")) == (None, None)


@pytest.mark.rule("G2", "G3", "V1")
async def test_changes_since_are_in_the_generation_before_it_is_shown_again(
    engine: Engine, catalogue: Catalogue
) -> None:
    catalogue.build(LAMP, BOOK)
    catalogue.build(LAMP, BOOK, TEAPOT)
    # Of these the follower took the first two only; the rollback reads the third by itself.
    catalogue.change(op="upsert", type="shops", record={**BOOK, "visibility": "under_review"}, version=7)
    catalogue.change(op="upsert", type="shops", record=_renamed(LAMP, "Lantern"), version=8)
    assert catalogue.follow().applied == 2
    catalogue.change(op="upsert", type="shops", record=shop("Vase", id="vase"), version=9)
    done = roll_back(engine.sink, catalogue.states, catalogue.changes())
    assert (done.changes.applied, catalogue.held("shops")) == (3, ["lamp", "vase"])
    assert names((await find(await engine.backend.refresh(), "")).shops) == ["Lantern", "Vase"]
    # Following goes on where it is now, and the deleted version stays deleted.
    catalogue.change(op="upsert", type="shops", record=BOOK, version=6)
    catalogue.change(op="delete", type="shops", key="vase", version=10)
    assert (catalogue.follow().applied, catalogue.held("shops")) == (1, ["lamp"])


@pytest.mark.rule("G2", "G3", "V1")
def test_changes_of_a_stream_that_cannot_be_read_again_are_taken_from_the_state_that_was_left(
    engine: Engine, catalogue: Catalogue
) -> None:
    catalogue.build(LAMP, BOOK, coupons=[coupon("SAVE", "lamp", id="c1"), coupon("LESS", "lamp", id="c2")])
    catalogue.build(LAMP, BOOK, coupons=[coupon("SAVE", "lamp", id="c1"), coupon("LESS", "lamp", id="c2")])
    catalogue.change(op="delete", type="shops", key="book", version=7)
    catalogue.change(op="delete", type="coupons", key="c1", version=7)
    catalogue.change(op="upsert", type="shops", record=TEAPOT, version=7)
    catalogue.follow()
    done = roll_back(engine.sink, catalogue.states, None)
    assert (done.carried_over, catalogue.held("shops"), catalogue.held("coupons")) == (3, ["lamp", "teapot"], ["c2"])


@pytest.mark.rule("G2", "V1")
def test_without_the_state_of_either_generation_nothing_is_rolled_back(engine: Engine, catalogue: Catalogue) -> None:
    first = catalogue.build(LAMP, BOOK)
    second = catalogue.build(LAMP)
    for lost in (first, second):
        path = catalogue.states.path(lost.generation)
        shutil.copy(path, copied := path.with_suffix(".kept"))
        path.unlink()
        with pytest.raises(StateError, match=r"lost .*build again"):
            roll_back(engine.sink, catalogue.states, None)
        assert engine.sink.live() == second
        shutil.move(copied, path)


@pytest.mark.rule("G2")
def test_without_a_previous_generation_there_is_nothing_to_go_back_to(engine: Engine, catalogue: Catalogue) -> None:
    for _ in range(2):
        with pytest.raises(SinkError, match="there is no previous generation to roll back to"):
            roll_back(engine.sink, catalogue.states, None)
        catalogue.build(LAMP)
    catalogue.build(LAMP)
    later = datetime.now(UTC) + timedelta(seconds=61)
    assert len(prune(engine.sink, catalogue.states, later, keep_previous=False)) == 2
    with pytest.raises(SinkError, match="there is no previous generation to roll back to"):
        roll_back(engine.sink, catalogue.states, None)


@pytest.mark.rule("G2")
def test_a_dry_run_reports_what_would_be_live_and_changes_nothing(tmp_path: Path) -> None:
    sink = EmbeddedSink(tmp_path / "index")
    catalogue = Catalogue(tmp_path, sink)
    first, second = catalogue.build(LAMP, BOOK), catalogue.build(LAMP)
    assert roll_back(sink, catalogue.states, None, dry_run=True).stamp == first
    assert sink.live() == second
