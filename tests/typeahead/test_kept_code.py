"""Machine code that is kept is not used after a change of what it was made of."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from typing import Any, Final

import numba
import pytest

from index_mappings import tiers, typeahead
from service.search import typeahead_kernel
from service.search.typeahead_kernel import arrays
from service.search.typeahead_kernel.arrays import made_of
from service.search.typeahead_kernel.key_press import entry, suggest

_FILES: Final = tuple(Path(typeahead_kernel.__path__[0]).glob("*.py"))


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (
                (f"{node.module}.{alias.name}" for alias in node.names)
                if node.module == "index_mappings"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_all_files_that_the_kernel_takes_something_from_are_told() -> None:
    imported = {name for file in _FILES for name in _imported(file)}
    ours = {name for name in imported if name.split(".")[0] in {"index_mappings", "indexer", "service"}}
    assert {name for name in ours if not name.startswith(typeahead_kernel.__name__)} == {
        tiers.__name__,
        typeahead.__name__,
    }


@pytest.mark.parametrize("changed", ["ranges", "__init__", "tiers", "typeahead", "new"])
def test_a_change_of_any_of_them_is_told(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    for file in _FILES:
        copy(file, kernel)
    monkeypatch.setattr(arrays, "__file__", str(kernel / "arrays.py"))
    for module in (tiers, typeahead):
        assert module.__file__ is not None
        monkeypatch.setattr(module, "__file__", str(copy(module.__file__, tmp_path)))
    before = made_of()
    assert before == made_of()
    file = (tmp_path if changed in {"tiers", "typeahead"} else kernel) / f"{changed}.py"
    with file.open("a", encoding="utf-8") as more:
        more.write("# changed\n")
    assert made_of() != before


def test_the_entry_closes_over_what_is_told() -> None:
    assert _closed_over(entry("a")) == ["a"]
    assert _closed_over(suggest) == [made_of()]


def test_numba_takes_no_kept_code_that_closes_over_something_else(
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
