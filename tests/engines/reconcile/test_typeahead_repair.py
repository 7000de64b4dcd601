"""The typeahead is compared with the state and repaired with its index (V1, G3)."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from index_mappings.documents import ShopDocument
from index_mappings.embedded import generation_directory
from index_mappings.typeahead.manifest import typeahead_directory
from index_mappings.typeahead.segment import Shown
from indexer.projection import Projector, project_shop
from indexer.reconcile.findings import Fault, FaultCount
from indexer.reconcile.live import VerifyOptions, verify_live
from indexer.sinks.embedded.files import write_stamp
from indexer.sinks.embedded.generation import generation_store
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.typeahead.editor import TypeaheadEditor
from indexer.state.state import State
from tests.engines.reconcile.world import DOCUMENTS_OF_THE_WORLD, World, built, lose, plant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def embedded(root: Path, tmp_path: Path) -> World:
    return built(EmbeddedSink(root), tmp_path)


def spoil(world: World, root: Path, fault: Callable[[State, TypeaheadEditor], None]) -> None:
    """Change the typeahead, and nothing in the index."""
    with world.editing() as (state, editor):
        typeahead = TypeaheadEditor(editor, generation_store(root, world.generation), editor.stamp.typeahead)
        fault(state, typeahead)
        stamp = replace(editor.stamp, typeahead=typeahead.commit())
        write_stamp(root, stamp)


def public(state: State, shop_id: str) -> ShopDocument:
    document = Projector(state).document("shops", shop_id)
    assert isinstance(document, ShopDocument)
    return document


def hidden(state: State, shop_id: str) -> ShopDocument:
    row = state.rows.row("shops", shop_id)
    assert row is not None
    assert row.shop is not None
    return project_shop(row.shop, (), 0, ())


def everything_wrong(state: State, typeahead: TypeaheadEditor) -> None:
    typeahead.put(hidden(state, "hidden"))
    typeahead.put(replace(public(state, "s1"), id="nobody"))
    typeahead.remove("shops", "s0")
    typeahead.remove("shops", "s9")
    typeahead.put(replace(public(state, "s4"), name="Another"))


def shown(world: World) -> dict[str, Shown]:
    """What suggestions show of all shops."""
    with world.editing() as (_, editor):
        return dict(editor.typeahead_shown("", None))


def damage(world: World, root: Path) -> None:
    """Change one byte of the only segment."""
    (path,) = typeahead_directory(generation_directory(root, world.generation)).glob("*.segment")
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])


@pytest.mark.rule("V1", "G3")
@pytest.mark.parametrize("rate", [None, 1.0, 3.0])
def test_what_is_wrong_there_only_is_found_by_class_and_repaired(
    embedded: World, root: Path, rate: float | None
) -> None:
    right = shown(embedded)
    spoil(embedded, root, everything_wrong)
    assert set(shown(embedded)) ^ set(right) == {"hidden", "nobody", "s0", "s9"}
    wrong = (
        FaultCount(Fault.NOT_PUBLIC, "shops", 1),
        FaultCount(Fault.GHOST, "shops", 1),
        FaultCount(Fault.MISSING, "shops", 2),
        FaultCount(Fault.STALE, "shops", 1),
    )

    found = embedded.reconcile(repair=False, rate=rate)
    assert (found.faults, found.remaining) == (wrong, 5)

    repaired = embedded.reconcile(repair=True, rate=rate)
    assert (repaired.faults, repaired.remaining, repaired.checked) == (wrong, 0, DOCUMENTS_OF_THE_WORLD)
    assert embedded.reconcile(repair=False, rate=rate).faults == ()
    assert shown(embedded) == right


def test_a_document_that_is_wrong_on_both_sides_counts_once(embedded: World, root: Path) -> None:
    spoil(embedded, root, lambda _, typeahead: typeahead.remove("shops", "s0"))
    plant(embedded, lose("shops", "s0"))
    assert embedded.reconcile(repair=True).faults == (FaultCount(Fault.MISSING, "shops", 1),)
    assert embedded.reconcile(repair=False).faults == ()


def test_what_is_pending_is_no_fault(embedded: World, root: Path) -> None:
    spoil(embedded, root, lambda _, typeahead: typeahead.remove("shops", "s0"))
    with embedded.editing() as (state, _), state.transaction():
        state.pending.add("shops", "s0")
    assert embedded.reconcile(repair=False).faults == ()


@pytest.mark.rule("G4")
def test_a_damaged_file_is_a_fault_of_its_own_and_is_written_again(
    embedded: World, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right, before = shown(embedded), embedded.sink.live()
    damage(embedded, root)
    wrong = (FaultCount(Fault.DAMAGED, "typeahead", 1),)
    assert embedded.reconcile(repair=False, rate=1.0).faults == wrong
    with caplog.at_level(logging.WARNING):
        repaired = verify_live(embedded.sink, embedded.states, options=VerifyOptions(repair=True)).found
    assert (repaired.faults, repaired.remaining, caplog.records) == (wrong, 0, [])
    assert embedded.reconcile(repair=False).faults == ()
    assert shown(embedded) == right
    live = embedded.sink.live()
    assert before is not None
    assert live == replace(before, sequence=before.sequence + 1)
