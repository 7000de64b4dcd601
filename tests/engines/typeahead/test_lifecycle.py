"""The embedded engine's typeahead goes with its generation: its stamp names it, and damage is mended by a commit."""

import errno
import logging
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from index_mappings.documents import CategoryEntry, ShopDocument
from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp
from index_mappings.typeahead.manifest import TypeaheadManifest, manifest_path, typeahead_directory
from index_mappings.typeahead.segment import shown_part
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError, TypeaheadDamagedError
from tests.engines.integration.generations import Documents, publish
from tests.engines.typeahead.followed import category, named

_BIRDS = (named("s1", "Kestrel Bird", 3.0), named("s2", "Kestrel", 1.0), named("s3", "Wren & Owl", 2.0))
_CATEGORIES = (category("birds", 2), category("owls", 9))


class _World:
    """A published generation."""

    def __init__(self, root: Path) -> None:
        self.sink = EmbeddedSink(root)
        kinds = dict.fromkeys(("coupons", "offers", "facts"), ())
        self.stamp = publish(self.sink, Documents({"shops": _BIRDS, "categories": _CATEGORIES, **kinds}))
        self.directory = typeahead_directory(generation_directory(root, self.stamp.generation))
        self.shops = {shop.id: shop for shop in _BIRDS}

    @property
    def manifest(self) -> TypeaheadManifest:
        name = self.stamp.typeahead
        return TypeaheadManifest.from_bytes(manifest_path(self.directory, name).read_bytes(), name)

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())

    def change(self, shops: Iterable[ShopDocument] = (), removed: Iterable[str] = ()) -> None:
        """Commit a micro-batch, as an update does, and see what suggestions show then."""
        shops, removed = list(shops), list(removed)
        editor = self.sink.edit(self.stamp.generation)
        try:
            editor.write("shops", shops, removed)
            editor.show()
            editor.commit(replace(self.stamp, sequence=self.stamp.sequence + 1))
            self.stamp = editor.stamp
            self.shops = {key: shop for key, shop in self.shops.items() if key not in removed}
            self.shops.update({shop.id: shop for shop in shops})
            assert editor.typeahead.shown("", None) == {key: shown_part(shop) for key, shop in self.shops.items()}
            assert editor.typeahead.damaged() == ()
        finally:
            editor.close()


@pytest.fixture
def world(tmp_path: Path) -> _World:
    return _World(tmp_path)


def _live(sink: EmbeddedSink) -> Stamp:
    stamp = sink.live()
    assert stamp is not None
    return stamp


def test_the_stamp_of_a_build_names_its_manifest(world: _World) -> None:
    (covering,) = world.manifest.coverings
    assert [use.shops for use in covering] == [3]
    owls, birds = (
        CategoryEntry(slug, slug.title(), count, (slug,), (slug,), (slug,))
        for slug, count in (("owls", 9), ("birds", 2))
    )
    assert world.manifest.categories == (owls, birds)
    assert world.files == sorted([f"{covering[0].name}.segment", f"{world.stamp.typeahead}.manifest"])
    assert _live(world.sink) == world.stamp


@pytest.mark.rule("C1", "G3")
def test_each_commit_names_the_manifest_of_its_changes(world: _World) -> None:
    before = world.stamp
    world.change([named("s4", "Kestrel Four"), named("s1", "Kite")], ["s2"])
    assert world.stamp.typeahead != before.typeahead
    assert (_live(world.sink), world.stamp.sequence) == (world.stamp, before.sequence + 1)
    world.change()
    assert world.stamp.typeahead == _live(world.sink).typeahead
    editor = world.sink.edit(world.stamp.generation)
    editor.write("categories", [category("kites", 4)], ["owls"])
    editor.show()
    editor.commit(replace(world.stamp, sequence=9))
    world.stamp = editor.stamp
    editor.close()
    assert [found.slug for found in world.manifest.categories] == ["kites", "birds"]


@pytest.mark.rule("V3")
@pytest.mark.parametrize("lost", ["directory", "manifest", "segments", "a byte", "all of one"])
def test_a_commit_builds_a_typeahead_that_is_lost_or_damaged_again_from_the_index(
    world: _World, caplog: pytest.LogCaptureFixture, lost: str
) -> None:
    world.change([named("s4", "Kestrel Four")], ["s2"])
    path = next(world.directory.glob("*.segment"))
    match lost:
        case "directory":
            shutil.rmtree(world.directory)
        case "manifest":
            manifest_path(world.directory, world.stamp.typeahead).unlink()
        case "segments":
            for found in world.directory.glob("*.segment"):
                found.unlink()
        case "a byte":
            for found in world.directory.glob("*.segment"):
                found.write_bytes(b"\1" + found.read_bytes()[1:])
        case _:
            path.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        world.change([named("s5", "Kestrel Five")], ["s1"])
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the typeahead is built again from the index" in caplog.text
    assert [use.shops for use in world.manifest.coverings[0]] == [3]
    caplog.clear()
    world.change([named("s6", "Kestrel Six")])
    assert caplog.records == []


def test_what_readers_of_a_damaged_typeahead_get_is_an_error(world: _World) -> None:
    (path,) = world.directory.glob("*.segment")
    path.unlink()
    editor = world.sink.edit(world.stamp.generation)
    with pytest.raises(TypeaheadDamagedError, match="cannot be read"):
        editor.typeahead.shown("", None)
    assert editor.typeahead.damaged() == (path.name,)
    editor.close()


def test_a_change_that_was_not_committed_is_made_again(world: _World) -> None:
    editor = world.sink.edit(world.stamp.generation)
    editor.write("shops", [named("s4", "Kestrel Four")], ["s1"])
    editor.show()
    editor.typeahead.commit()  # killed here, before the stamp is written
    editor.close()
    assert set(world.sink.edit(world.stamp.generation).typeahead.shown("", None)) == {"s1", "s2", "s3"}
    world.change([named("s4", "Kestrel Four"), named("s5", "Kestrel Five")], ["s1"])
    assert world.stamp.sequence == 2


def _full(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_fails_a_commit_and_leaves_what_was_there(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = world.files
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", _full)
        with pytest.raises(SinkError, match=r"the typeahead could not be written: .*No space"):
            world.change([named("s4", "Kestrel Four")])
    assert (world.files, _live(world.sink)) == (before, world.stamp)
    world.change([named("s4", "Kestrel Four")])


def test_a_generation_is_dropped_with_its_typeahead(world: _World) -> None:
    world.sink.drop(world.stamp.generation)
    assert not world.directory.exists()
