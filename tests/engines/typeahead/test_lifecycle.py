"""The embedded engine's typeahead goes with its generation, and cached machine code with its source."""

import ast
import errno
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copy
from typing import Any, Final, NoReturn

import numba
import pytest

from index_mappings import tiers
from index_mappings.documents import CategoryEntry, ShopDocument
from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError, TypeaheadDamagedError
from shop_directory.typeahead import kernel, segment
from shop_directory.typeahead.kernel import arrays
from shop_directory.typeahead.kernel.arrays import source_hash
from shop_directory.typeahead.kernel.suggest import suggest, suggest_entry
from shop_directory.typeahead.manifest import FOLDER, TypeaheadManifest, manifest_path
from shop_directory.typeahead.segment import segment_path, shown_part
from tests.engines.integration.generations import Documents, publish
from tests.engines.typeahead.segmented import category, named

_BIRDS = (named("s1", "Kestrel Bird", 3.0), named("s2", "Kestrel", 1.0), named("s3", "Wren & Owl", 2.0))
_CATEGORIES = (category("birds", 2), category("owls", 9))


class _World:
    def __init__(self, root: Path) -> None:
        self.sink = EmbeddedSink(root)
        kinds = dict.fromkeys(("coupons", "offers", "facts"), ())
        self.stamp = publish(self.sink, Documents({"shops": _BIRDS, "categories": _CATEGORIES, **kinds}))
        self.directory = generation_directory(root, self.stamp.generation) / FOLDER
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
        CategoryEntry(slug, slug.title(), count, (slug,), (f"1{slug}",)) for slug, count in (("owls", 9), ("birds", 2))
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
    path = segment_path(world.directory, world.manifest.coverings[0][0].name)
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


def test_what_was_put_stays_when_the_typeahead_is_built_again(world: _World) -> None:
    editor = world.sink.edit(world.stamp.generation)
    editor.write("shops", [named("s4", "Kestrel Four")], ["s1"])  # and not shown, so the index lacks it
    editor.typeahead.rebuild()
    editor.typeahead.commit()
    assert set(editor.typeahead.shown("", None)) == {"s2", "s3", "s4"}
    editor.close()


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


_FILES: Final = tuple(Path(kernel.__path__[0]).glob("*.py"))


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (
                (f"{node.module}.{alias.name}" for alias in node.names)
                if node.module in {"index_mappings", "shop_directory.typeahead"}
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_file_that_the_kernel_imports_from_is_listed() -> None:
    imported = {name for file in _FILES for name in _imported(file)}
    ours = {
        name for name in imported if name.split(".")[0] in {"index_mappings", "indexer", "service", "shop_directory"}
    }
    assert {name for name in ours if not name.startswith(kernel.__name__)} == {tiers.__name__, segment.__name__}


@pytest.mark.parametrize("changed", ["ranking", "__init__", "tiers", "segment", "new"])
def test_a_change_of_any_of_them_is_detected(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = tmp_path / "kernel"
    copied.mkdir()
    for file in _FILES:
        copy(file, copied)
    monkeypatch.setattr(arrays, "__file__", str(copied / "arrays.py"))
    for module in (tiers, segment):
        assert module.__file__ is not None
        monkeypatch.setattr(module, "__file__", str(copy(module.__file__, tmp_path)))
    before = source_hash()
    assert before == source_hash()
    file = (tmp_path if changed in {"tiers", "segment"} else copied) / f"{changed}.py"
    with file.open("a", encoding="utf-8") as more:
        more.write("# changed\n")
    assert source_hash() != before


def test_the_entry_closes_over_the_hash_of_its_source() -> None:
    assert _closed_over(suggest_entry("a")) == ["a"]
    assert _closed_over(suggest) == [source_hash()]


def test_numba_uses_no_cached_code_that_closes_over_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def hits(made: str) -> int:
        @numba.njit(cache=True)
        def one() -> int:
            _ = made
            return 1

        one()
        return sum(one.stats.cache_hits.values())

    assert [hits("a"), hits("a"), hits("b"), hits("b"), hits("a")] == [0, 1, 0, 1, 1]


def _closed_over(function: Callable[..., Any]) -> list[Any]:
    compiled: Any = function
    return [cell.cell_contents for cell in compiled.py_func.__closure__]


def test_a_process_that_caches_elsewhere_takes_what_the_installation_compiled(tmp_path: Path) -> None:
    program = (
        "from shop_directory.typeahead.compiled import load_kernel, suggest\n"
        "load_kernel()\n"
        "print(suggest.stats.cache_path, sum(suggest.stats.cache_hits.values()), suggest.stats.cache_misses)\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    (folder,) = (tmp_path / "cache").iterdir()
    assert run.stdout.splitlines() == [f"{folder} 1 Counter()"]
    assert not list(folder.glob("*.new"))


def test_of_processes_that_start_together_one_compiles_with_progress_and_the_others_wait(tmp_path: Path) -> None:
    # Compiling takes a second here, and its result is that of the installation.
    program = (
        "import logging, pathlib, sys, time\n"
        "from shop_directory.typeahead import compiled\n"
        "logging.basicConfig(level=logging.INFO, format='%(message)s', stream=sys.stdout)\n"
        "installed, load, compiled._REPORT_SECONDS = compiled._INSTALLED, compiled.compile_kernel, 0.3\n"
        "compiled._INSTALLED = pathlib.Path('nowhere')\n"
        "def compile_kernel():\n"
        "    if not compiled.is_compiled():\n"
        "        time.sleep(1)\n"
        "        compiled._INSTALLED = installed\n"
        "        compiled._copy()\n"
        "    load()\n"
        "compiled.compile_kernel = compile_kernel\n"
        "compiled.load_kernel()\n"
        "print(sum(compiled.suggest.stats.cache_hits.values()), sum(compiled.suggest.stats.cache_misses.values()))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate()[0].splitlines() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    lines = [line for printed_by in printed for line in printed_by]
    counts = [
        sum(line.startswith(begun) for line in lines) for begun in ("compiling the typeahead to", "the typeahead is")
    ]
    assert counts == [1, 1]
    assert sum(" of about " in line for line in lines) >= 2
    assert {printed_by[-1] for printed_by in printed} == {"1 0"}


def test_machine_code_of_other_sources_is_not_taken_for_compiled(tmp_path: Path) -> None:
    program = (
        "import pathlib\n"
        "from shop_directory.typeahead import compiled\n"
        "compiled._copy()\n"
        "print(compiled.is_compiled())\n"
        "compiled._ENTRY._cache._cache_file._source_stamp = (0.0, 0)\n"
        "print(compiled.is_compiled())\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["True", "False"]
