"""A segment is what its shops give, in whichever order and in however many runs they come; it is whole or not there."""

import errno
import os
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index_mappings.documents import CategoryEntry, ShopDocument, stored_part
from index_mappings.typeahead.manifest import TypeaheadManifest
from index_mappings.typeahead.segment import DOTTED, FULL, KEY, LEADING, NAME, WORD
from indexer.jobs.build import build
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.typeahead.build import TypeaheadBuild, marked_texts, segment_shop, stored_segment_shop
from indexer.sinks.typeahead.store import TypeaheadStore
from indexer.sources.ndjson import NdjsonCatalogue
from tests.engines.typeahead.followed import category, named, projected, written
from tests.rules.backends.strategies import catalogues
from tests.support.catalogues import shop as line_of
from tests.support.catalogues import write_catalogue_directory

_BIRDS = [named(f"s{number}", name, popularity) for number, (name, popularity) in enumerate(
    (("Kestrel Bird", 3.0), ("Kestrel", None), ("Wren & Owl", 2.0), ("Müller 緑", 2.0), ("???", 0.0))
)]  # fmt: skip


def _shops(lines: list[dict[str, Any]]) -> list[ShopDocument]:
    return [projected(line["id"], line) for line in lines]


@settings(deadline=None)
@given(lines=catalogues, run_shops=st.integers(1, 31), data=st.data())
def test_neither_the_order_of_the_shops_nor_the_size_of_the_runs_makes_a_difference(
    lines: list[dict[str, Any]], run_shops: int, data: st.DataObject
) -> None:
    shops = _shops(lines)
    with TemporaryDirectory() as directory:
        expected = written(Path(directory), shops)
        store = TypeaheadStore(Path(directory) / "typeahead")
        with closing(TypeaheadBuild(store, run_shops)) as building:
            for shop in data.draw(st.permutations(shops)):
                building.add(shop)
            name = building.finish()
        assert _manifest(store, name).coverings == ((expected,),)
        assert _files(store) == {f"{expected.name}.segment", f"{name}.manifest"}


def test_a_manifest_has_all_categories_in_order(tmp_path: Path) -> None:
    store = TypeaheadStore(tmp_path)
    with closing(TypeaheadBuild(store)) as building:
        for slug, count in (("b", 2), ("c", 7), ("a", 2)):
            building.add(category(slug, count))
        name = building.finish()
    found = _manifest(store, name)
    ordered = (("c", 7), ("a", 2), ("b", 2))
    assert found.categories == tuple(
        CategoryEntry(slug, slug.title(), count, (slug,), (slug,), (slug,)) for slug, count in ordered
    )
    assert [use.shops for use in found.coverings[0]] == [0]


@settings(deadline=None)
@given(catalogues)
def test_a_stored_shop_gives_the_same_as_its_document(lines: list[dict[str, Any]]) -> None:
    for shop in _shops(lines):
        assert stored_segment_shop(stored_part(shop)) == segment_shop(shop)


@pytest.mark.rule("M9")
def test_texts_of_labels_left_of_the_main_one_are_dotted() -> None:
    shop = projected("s", line_of("Kestrel", "wren.kestrel.internal"))
    assert marked_texts(shop) == {
        "kestrel": FULL | KEY | WORD | NAME | LEADING,
        "wren": KEY | DOTTED,
        "wren.kestrel.internal": FULL | KEY | NAME | DOTTED,
        "wren kestrel internal": FULL | KEY | NAME | DOTTED,
    }


def test_a_segment_is_named_by_its_bytes(tmp_path: Path) -> None:
    use = written(tmp_path, _BIRDS)
    data = (tmp_path / f"{use.name}.segment").read_bytes()
    assert (sha256(data).hexdigest(), len(data), 5) == (use.name, use.size, use.shops)


@pytest.mark.parametrize("runs", [1, 2])
def test_a_full_disk_fails_a_build_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    def full(descriptor: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = TypeaheadStore(tmp_path)
    with closing(TypeaheadBuild(store, run_shops=-(-len(_BIRDS) // runs))) as building:
        for shop in _BIRDS[:-1]:
            building.add(shop)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SinkError, match="No space"):
            building.finish()
    assert _files(store) == set()


def test_a_build_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    store = TypeaheadStore(tmp_path)
    with closing(TypeaheadBuild(store, run_shops=2)) as building:
        for shop in _BIRDS:
            building.add(shop)
    assert _files(store) == set()


@pytest.mark.rule("V1")
def test_no_file_has_the_name_of_a_hidden_shop(tmp_path: Path) -> None:
    lines = [
        line_of("Kestrel", "kestrel.internal"),
        line_of("Zanzicanary", "zanzicanary.internal", visibility="under_review"),
        line_of("Zanzicanary Too", "zanzicanary-too.internal", visibility="removed"),
    ]
    catalogue = write_catalogue_directory(tmp_path / "catalogue", shops=lines)
    build(NdjsonCatalogue(catalogue), EmbeddedSink(tmp_path / "index"))
    files = [path.read_bytes() for path in tmp_path.glob("index/generations/*/typeahead/*")]
    assert len(files) == 2
    for coding in ("utf-8", "utf-32-le"):
        assert any("kestrel".encode(coding) in data for data in files)
        assert not any("anzicanary".encode(coding) in data for data in files)


def _manifest(store: TypeaheadStore, name: str) -> TypeaheadManifest:
    return TypeaheadManifest.from_bytes(store.fetch(name, ".manifest").read_bytes(), name)


def _files(store: TypeaheadStore) -> set[str]:
    return {path.name for path in store.directory.iterdir()}
