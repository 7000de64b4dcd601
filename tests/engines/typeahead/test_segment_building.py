"""Segments are built of shops in any order and runs, and merged byte by byte, whole or not at all."""

import errno
import os
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.documents import ShopDocument, stored_part
from indexer.jobs.build import build
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sources.ndjson import NdjsonCatalogue
from shop_directory.typeahead.manifest import SegmentUse, TypeaheadManifest, bitmap_of
from shop_directory.typeahead.segment import FULL, KEY, LEADING, NAME, REST, WORD, segment_path
from shop_directory.typeahead.writing import merging
from shop_directory.typeahead.writing.build import (
    ShopRun,
    TypeaheadBuild,
    marked_texts,
    segment_shop,
    stored_segment_shop,
)
from shop_directory.typeahead.writing.merging import Input, merge, rounds, weight
from shop_directory.typeahead.writing.segment_file import Segment, mapped, open_segment, write_segment
from shop_directory.typeahead.writing.store import TypeaheadStore
from tests.engines.typeahead.segmented import named, projected, written
from tests.rules.backends.strategies import catalogues
from tests.support.catalogues import shop as line_of
from tests.support.catalogues import write_catalogue_directory
from tests.support.real.disks import small_disk

_BIRDS = [named(f"s{number}", name, popularity) for number, (name, popularity) in enumerate(
    (("Kestrel Bird", 3.0), ("Kestrel", None), ("Wren & Owl", 2.0), ("Müller 緑", 2.0), ("???", 0.0))
)]  # fmt: skip


def test_an_array_in_a_file_is_an_error_on_a_full_disk_and_does_not_end_the_process(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        assert mapped(disk.folder, 1_000, np.dtype(np.int32)).tolist() == [0] * 1_000
        with pytest.raises(OSError, match="No space left on device"):
            mapped(disk.folder, 1_000_000, np.dtype(np.int32))


def _shops(lines: list[dict[str, Any]]) -> list[ShopDocument]:
    return [projected(line["id"], line) for line in lines]


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


def _weight_alone(shop: ShopDocument) -> int:
    run = ShopRun()
    run.add(segment_shop(shop))
    return run.most_weight


@given(lines=catalogues, run_shops=st.integers(1, 9), most=st.integers(1, 200))
def test_a_build_writes_segments_of_bounded_size_that_together_are_the_one_segment(
    lines: list[dict[str, Any]], run_shops: int, most: int
) -> None:
    shops = _shops(lines)
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        expected = written(Path(directory), shops)
        # What is read and sorted in blocks has several of them.
        patch.setattr("shop_directory.typeahead.writing.merging._BLOCK", 3)
        patch.setattr("shop_directory.typeahead.writing.merging._KEYS", 2)
        patch.setattr("shop_directory.typeahead.writing.segment_file._INVERTED_LISTS", 2)
        store = TypeaheadStore(Path(directory) / "typeahead")
        store.segment_texts = most
        with closing(TypeaheadBuild(store, run_shops)) as building:
            for shop in shops:
                building.add(shop)
            name = building.finish()
        (covering,) = _manifest(store, name).coverings
        assert _files(store) == {f"{name}.manifest", *(f"{use.name}.segment" for use in covering)}
        segments = [open_segment(segment_path(store.directory, use.name)) for use in covering]
        alone = max(map(_weight_alone, shops), default=0)
        assert all(weight(segment.contents) < most + alone for segment in segments)
        if weight(open_segment(segment_path(Path(directory), expected.name)).contents) > most + alone:
            assert len(covering) > 1
        assert merge(Path(directory), list(map(Input, segments))) == expected


@given(catalogues)
def test_a_stored_shop_gives_the_same_as_its_document(lines: list[dict[str, Any]]) -> None:
    for shop in _shops(lines):
        assert stored_segment_shop(stored_part(shop)) == segment_shop(shop)


@pytest.mark.rule("M6", "M9")
def test_the_one_word_after_an_article_is_a_full_form_with_a_mark_of_its_own() -> None:
    marks = marked_texts(projected("s", line_of("The Kestrel", "birds.internal")))
    assert marks["kestrel"] == REST | KEY | WORD | NAME | LEADING
    assert marks["the kestrel"] == FULL | KEY | NAME | LEADING


@pytest.mark.parametrize(("runs", "most", "written_before"), [(1, 1_000, 0), (2, 1_000, 0), (2, 1, 0), (5, 20, 2)])
def test_a_full_disk_fails_a_build_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int, most: int, written_before: int
) -> None:
    durable, left = os.fsync, written_before

    def full(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        durable(descriptor)

    store = TypeaheadStore(tmp_path)
    store.segment_texts = most
    with closing(TypeaheadBuild(store, run_shops=-(-len(_BIRDS) // runs))) as building:
        for shop in _BIRDS[:-1]:
            building.add(shop)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
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


@given(lines=catalogues, block=st.sampled_from((1, 5, 1_000)), data=st.data())
def test_merged_segments_are_the_segment_of_their_current_shops(
    lines: list[dict[str, Any]], block: int, data: st.DataObject
) -> None:
    parts: list[ShopRun] = [ShopRun() for _ in range(data.draw(st.integers(1, 5)))]
    removed: list[list[str]] = [[] for _ in parts]
    current = []
    for line in lines:
        shop = projected(line["id"], line)
        place = data.draw(st.integers(0, len(parts) - 1))
        parts[place].add(segment_shop(shop))
        if data.draw(st.booleans()):
            removed[place].append(shop.id)
            if data.draw(st.booleans()):
                continue
            # It is in another segment as it is now.
            shop = projected(shop.id, data.draw(st.sampled_from(lines)))
            newer = ShopRun()
            newer.add(segment_shop(shop))
            parts.append(newer)
            removed.append([])
        current.append(shop)
    inputs = []
    for run, gone in zip(parts, removed, strict=True):
        segment = Segment(run.contents())
        inputs.append(
            Input(segment, bitmap_of(number for shop in gone if (number := segment.number(shop)) is not None))
        )
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as small:
        small.setattr(merging, "rounds", partial(rounds, most=block))
        small.setattr(merging, "_BLOCK", block)
        assert merge(Path(directory), inputs) == written(Path(directory), current)


def test_a_merge_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use = written(tmp_path, [named("s1", "Kestrel")])
    before = list(tmp_path.iterdir())

    def failing(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError):  # noqa: PT011 - any
        merge(tmp_path, [Input(open_segment(before[0])), Input(_in_memory("s2", "Wren"))])
    assert (list(tmp_path.iterdir()), before[0].stem) == (before, use.name)


def test_more_runs_than_may_be_open_are_merged_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[int] = []

    def counted(directory: Path, inputs: list[Input]) -> SegmentUse:
        merged.append(len(inputs))
        return merge(directory, inputs)

    monkeypatch.setattr("shop_directory.typeahead.writing.build._MOST_INPUTS", 3)
    monkeypatch.setattr("shop_directory.typeahead.writing.build.merge", counted)
    store = TypeaheadStore(tmp_path / "typeahead")
    with closing(TypeaheadBuild(store, run_shops=1)) as building:
        for shop in _BIRDS:
            building.add(shop)
        name = building.finish()
    expected = written(tmp_path, _BIRDS)
    assert max(merged) == 3
    assert len(merged) > 1
    assert _manifest(store, name).coverings == ((expected,),)
    assert _files(store) == {f"{expected.name}.segment", f"{name}.manifest"}


@pytest.mark.parametrize("works", [True, False])
def test_of_two_segments_one_is_merged_by_another_process_or_here_if_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, works: bool
) -> None:
    merged: list[int] = []

    def counted(directory: Path, inputs: list[Input]) -> SegmentUse:
        merged.append(sum(entry.segment.contents.shops for entry in inputs))
        return merge(directory, inputs)

    monkeypatch.setattr("shop_directory.typeahead.writing.build._LONG_MERGE", 1)
    monkeypatch.setattr("shop_directory.typeahead.writing.build.merge", counted)
    if not works:
        monkeypatch.setattr("sys.executable", "false")
    shops = [named(f"s{number}", f"Kestrel {number}") for number in range(12)]
    store = TypeaheadStore(tmp_path / "typeahead")
    weights = [_weight_alone(shop) for shop in shops]
    store.segment_texts = sum(weights) * 3 // 4
    with closing(TypeaheadBuild(store, run_shops=1)) as building:
        for shop in shops:
            building.add(shop)
        name = building.finish()
    (covering,) = _manifest(store, name).coverings
    assert [use.shops for use in covering] == [6, 6]
    assert merged == ([6] if works else [6, 6])
    assert _files(store) == {f"{name}.manifest", *(f"{use.name}.segment" for use in covering)}
    segments = [Input(open_segment(segment_path(store.directory, use.name))) for use in covering]
    assert merge(tmp_path, segments) == written(tmp_path, shops)


def _in_memory(shop_id: str, name: str) -> Segment:
    run = ShopRun()
    run.add(segment_shop(named(shop_id, name)))
    return Segment(run.contents())


@pytest.mark.parametrize("damage", ["shortened", "flipped", "renamed", "empty"])
def test_a_damaged_segment_is_refused(tmp_path: Path, damage: str) -> None:
    run = ShopRun()
    run.add(segment_shop(named("s1", "Kestrel")))
    use = write_segment(tmp_path, *run.contents())
    path = tmp_path / f"{use.name}.segment"
    whole = path.read_bytes()
    open_segment(path)
    match damage:
        case "shortened":
            path.write_bytes(whole[:-1])
        case "flipped":
            path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        case "renamed":
            path = path.rename(tmp_path / f"{'0' * 64}.segment")
        case _:
            path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"damaged|empty"):
        open_segment(path)


@pytest.mark.parametrize("shops", [1, 5])
def test_the_weight_of_a_segment_is_that_of_its_texts_shops_or_longest_list(shops: int) -> None:
    run = ShopRun()
    for shop in _BIRDS[:shops]:
        run.add(segment_shop(shop))
    contents = run.contents()
    texts = len({text for shop in _BIRDS[:shops] for text in marked_texts(shop)})
    assert texts == len(contents.arrays["firsts"])
    assert weight(contents) == max(8 * shops, texts, -(-len(contents.arrays["letters"]) // 16)) <= run.most_weight
    assert weight(contents._replace(shops=10_000)) == 80_000
    for name in ("letters", "postings", "own_categories", "ids"):
        long = np.zeros(16 * 10_000 + 1, np.int8)
        assert weight(contents._replace(arrays={**contents.arrays, name: long})) == 10_001
