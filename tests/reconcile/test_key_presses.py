"""What key presses are answered from beside an embedded index is compared and mended with it (V1, G3)."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from index_mappings.documents import ShopDocument
from index_mappings.embedded import generation_directory
from index_mappings.typeahead import texts_path, typeahead_directory
from indexer.project import project_shop
from indexer.projection import Projector
from indexer.reconcile_found import Fault, FaultCount
from indexer.sinks.embedded import EmbeddedSink
from indexer.sinks.embedded_typeahead import TypeaheadEditor
from indexer.state.state import State
from service.search.embedded_typeahead import Typeaheads
from tests.reconcile.world import DOCUMENTS_OF_THE_WORLD, World, built, lose, plant
from tests.typeahead.kept import forms_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def embedded(root: Path, tmp_path: Path) -> World:
    return built(EmbeddedSink(root), tmp_path)


def spoil(world: World, root: Path, fault: Callable[[State, TypeaheadEditor], None]) -> None:
    """Change what is beside the index, and nothing in it."""
    with world.editing() as (state, editor):
        beside = TypeaheadEditor(root, world.generation, lambda: 10, lambda: ())
        fault(state, beside)
        beside.commit(editor.stamp.sequence, editor.stamp.sequence)


def public(state: State, shop_id: str) -> ShopDocument:
    document = Projector(state).document("shops", shop_id)
    assert isinstance(document, ShopDocument)
    return document


def hidden(state: State, shop_id: str) -> ShopDocument:
    row = state.shops.row(shop_id)
    assert row is not None
    assert row.record is not None
    return project_shop(row.record, (), 0, ())


def everything_wrong(state: State, beside: TypeaheadEditor) -> None:
    beside.put(hidden(state, "hidden"))
    beside.put(replace(public(state, "s1"), id="nobody"))
    beside.remove("s0")
    beside.remove("s9")
    beside.put(replace(public(state, "s4"), name="Another"))


def suggested(world: World, root: Path, query: str) -> list[str]:
    """The ids that a service shows that answers from the files beside the index."""
    stamp = world.sink.live()
    assert stamp is not None
    typeahead = Typeaheads(root).opened(stamp)
    assert typeahead is not None
    return [one.shop.id for one in typeahead.best(forms_of(query), None, 20)]


@pytest.mark.parametrize("rate", [None, 1.0, 3.0])
def test_what_is_wrong_there_only_is_found_by_class_and_mended(embedded: World, root: Path, rate: float | None) -> None:
    right = suggested(embedded, root, "shop")
    spoil(embedded, root, everything_wrong)
    assert suggested(embedded, root, "under review") == ["hidden"]
    wrong = (
        FaultCount(Fault.NOT_PUBLIC, "shops", 1),
        FaultCount(Fault.GHOST, "shops", 1),
        FaultCount(Fault.MISSING, "shops", 2),
        FaultCount(Fault.STALE, "shops", 1),
    )

    found = embedded.reconcile(repair=False, rate=rate)
    assert (found.faults, found.left) == (wrong, 5)

    mended = embedded.reconcile(repair=True, rate=rate)
    assert (mended.faults, mended.left, mended.checked) == (wrong, 0, DOCUMENTS_OF_THE_WORLD)
    assert embedded.reconcile(repair=False, rate=rate).faults == ()
    assert suggested(embedded, root, "under review") == []
    assert suggested(embedded, root, "shop") == right


def test_a_document_that_is_wrong_on_both_sides_counts_once(embedded: World, root: Path) -> None:
    spoil(embedded, root, lambda _, beside: beside.remove("s0"))
    plant(embedded, lose("shops", "s0"))
    assert embedded.reconcile(repair=True).faults == (FaultCount(Fault.MISSING, "shops", 1),)
    assert embedded.reconcile(repair=False).faults == ()


def test_what_is_pending_is_no_fault(embedded: World, root: Path) -> None:
    spoil(embedded, root, lambda _, beside: beside.remove("s0"))
    with embedded.editing() as (state, _), state.transaction():
        state.pending.add("shops", "s0")
    assert embedded.reconcile(repair=False).faults == ()


def test_a_damaged_file_is_told_and_no_shop_is_at_fault(
    embedded: World, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = texts_path(typeahead_directory(generation_directory(root, embedded.generation)), "base-1")
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with caplog.at_level(logging.WARNING):
        assert embedded.reconcile(repair=False, rate=1.0).faults == ()
    assert [record.getMessage() for record in caplog.records] == [
        "key presses are answered by the index alone, which is slower: the file of texts is damaged"
    ]
