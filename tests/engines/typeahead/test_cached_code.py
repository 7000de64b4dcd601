"""Cached machine code is not used after a change of what it was made of."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from typing import Any, Final

import numba
import pytest

from index_mappings import tiers
from index_mappings.typeahead import segment
from service.search.typeahead import kernel
from service.search.typeahead.kernel import arrays
from service.search.typeahead.kernel.arrays import source_hash
from service.search.typeahead.kernel.suggest import suggest, suggest_entry

_FILES: Final = tuple(Path(kernel.__path__[0]).glob("*.py"))


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (
                (f"{node.module}.{alias.name}" for alias in node.names)
                if node.module in {"index_mappings", "index_mappings.typeahead"}
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_file_that_the_kernel_imports_from_is_listed() -> None:
    imported = {name for file in _FILES for name in _imported(file)}
    ours = {name for name in imported if name.split(".")[0] in {"index_mappings", "indexer", "service"}}
    assert {name for name in ours if not name.startswith(kernel.__name__)} == {
        tiers.__name__,
        segment.__name__,
    }


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
        "from service.search.typeahead.compiled import load_kernel, suggest\n"
        "load_kernel()\n"
        "print(suggest.stats.cache_path, sum(suggest.stats.cache_hits.values()), suggest.stats.cache_misses)\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    (folder,) = (tmp_path / "cache").iterdir()
    assert run.stdout.splitlines() == [f"{folder} 1 Counter()"]
    assert not list(folder.glob("*.new"))


@pytest.mark.parametrize(
    ("before", "logged"),
    [("", []), ("compiled._INSTALLED = pathlib.Path('nowhere')", ["compiling the typeahead to machine code"])],
)
def test_a_process_that_has_to_compile_logs_it_first(tmp_path: Path, before: str, logged: list[str]) -> None:
    # Compiling itself is left out, as it takes half a minute.
    program = (
        "import logging, pathlib, sys\n"
        "from service.search.typeahead import compiled\n"
        "logging.basicConfig(level=logging.INFO, format='%(message)s', stream=sys.stdout)\n"
        f"{before}\n"
        "compiled.compile_kernel = lambda: None\n"
        "compiled.load_kernel()\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert [line.split(",")[0] for line in run.stdout.splitlines()] == logged
