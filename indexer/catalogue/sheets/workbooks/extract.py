"""The process that reads a workbook or a JSON list: `python -m` this module with BYTES of memory, FILE, perhaps SHEET.

It writes one JSON document a line: `[line, cells]` of each row that is not blank, `true` behind those of hidden ones,
and a report of the sheet, or the `error` that ended the reading. Its memory and its output are limited.
"""

import json
import resource
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from indexer.catalogue.sheets.workbooks.archive import Archive, unreadable_workbook
from indexer.catalogue.sheets.workbooks.json_list import JsonList
from indexer.catalogue.sheets.workbooks.ods import Ods
from indexer.catalogue.sheets.workbooks.rows import Book, Sheet
from indexer.catalogue.sheets.workbooks.xlsx import Xlsx
from indexer.records.problems import MAX_SHOWN, CatalogueError

# Bytes for a reading; a workbook of a million cells takes a tenth.
MEMORY: Final = 1 << 30
_OUTPUT: Final = 2 << 30
# As in a CSV: `csv.field_size_limit`. Spreadsheets allow a quarter of it.
_MAX_CELL: Final = 131_072
_LISTED: Final = 100
_MEMBERS: Final = 3
_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0"


def _opened(path: Path) -> Book:
    with path.open("rb") as file:
        head = file.read(4)
    if head == _OLE:
        # What only one format needs is imported for it.
        from indexer.catalogue.sheets.workbooks.xls import Xls  # noqa: PLC0415

        return Xls(path)
    if head != _ZIP:
        return JsonList(path)
    archive = Archive(path)
    names = archive.names
    if "content.xml" in names:
        return Ods(archive)
    if any(name.endswith("workbook.bin") for name in names):
        raise CatalogueError(f"{path} is an .xlsb, whose hidden rows are not known: save it as .xlsx or as CSV")
    if any(name.endswith("workbook.xml") for name in names):
        return Xlsx(archive)
    more = len(names) - _MEMBERS
    listed = ", ".join(repr(name[:MAX_SHOWN]) for name in names[:_MEMBERS]) + (
        f" and {more:,} more" if more > 0 else ""
    )
    raise CatalogueError(f"{path} is a ZIP archive ({listed}), no workbook: unpack it first")


def _chosen(path: Path, sheets: tuple[Sheet, ...], wanted: str | None) -> str:
    """The sheet of this name, by default the first that is visible."""
    shown = [one.name for one in sheets if not one.is_hidden]
    name = next(iter(shown), None) if wanted is None else wanted
    if name is None and sheets:
        hidden = ", ".join(repr(one.name) for one in sheets)
        raise CatalogueError(f"{path} has hidden sheets alone: name one of {hidden} by --sheet")
    if name not in {one.name for one in sheets}:
        raise CatalogueError(f"{path} has no sheet {wanted!r}: name one of {', '.join(map(repr, shown[:_LISTED]))}")
    return str(name)


def _extract(path: Path, wanted: str | None) -> Mapping[str, Any]:
    book = _opened(path)
    name = _chosen(path, book.sheets, wanted)
    hidden = list[list[int]]()
    is_behind_hidden = False
    for row in book.rows(name):
        if any(len(cell) > _MAX_CELL for cell in row.cells):
            raise CatalogueError(f"a cell of the workbook has more than {_MAX_CELL:,} characters: shorten it")
        if row.is_hidden and is_behind_hidden:
            hidden[-1][1:] = [row.line, hidden[-1][2] + 1]
        elif row.is_hidden:
            hidden.append([row.line, row.line, 1])
        is_behind_hidden = row.is_hidden
        line = [row.line, row.cells, True] if row.is_hidden else [row.line, row.cells]
        sys.stdout.write(f"{json.dumps(line, ensure_ascii=True)}\n")
    layout = book.layout
    return {
        "sheet": name,
        "other_sheets": [one.name for one in book.sheets if not one.is_hidden and one.name != name][:_LISTED],
        "hidden_rows": hidden,
        "hidden_columns": sorted(layout.hidden_columns),
        "merged": layout.merged,
        "strays": layout.strays,
        "first_stray": layout.first_stray,
    }


def main(memory: int, path: Path, sheet: str | None) -> None:
    """Write rows and a report to standard output; the report says why nothing more was read."""
    for limit, size in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, _OUTPUT)):
        with suppress(ValueError, OSError):  # a system that has no such limit
            resource.setrlimit(limit, (size, size))
    report: Mapping[str, Any]
    try:
        report = _extract(path, sheet)
    except CatalogueError as error:
        report = {"error": str(error)}
    except MemoryError:
        report = {"error": f"{path} takes more than {memory >> 20:,} MiB of memory: split it, or save it as CSV"}
    except Exception as error:  # noqa: BLE001 - whatever a damaged file leads to
        reason = f"{type(error).__name__} {error}".strip()[:MAX_SHOWN]
        report = {"error": str(unreadable_workbook(path, reason))}
    sys.stdout.write(f"{json.dumps(report)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), next(iter(sys.argv[3:]), None))
