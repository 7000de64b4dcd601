"""Reads the sheets of an .ods (OpenDocument) row by row."""

from collections.abc import Iterator, Mapping
from typing import Final

from indexer.catalogue.sheets.workbooks.archive import Archive
from indexer.catalogue.sheets.workbooks.numbers import NumberFormat, number_text
from indexer.catalogue.sheets.workbooks.rows import MAX_COLUMNS, MAX_ROWS, CellTexts, Layout, Sheet, SheetRow, is_flat
from indexer.records.problems import CatalogueError

_CONTENT: Final = "content.xml"
_HIDDEN: Final = frozenset({"collapse", "filter"})
_CELLS: Final = frozenset({"table-cell", "covered-table-cell"})
_GROUPS: Final = frozenset({"table-row-group", "table-column-group"})
_PERCENT: Final = NumberFormat(is_percent=True)
_MIDNIGHT: Final = "T00:00:00"


class Ods:
    """As of Book."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        names = _Content(None, Layout())
        for _ in archive.parse(_CONTENT, names):
            pass
        self.sheets = tuple(names.sheets)
        self.layout = Layout()

    def rows(self, sheet: str) -> Iterator[SheetRow]:
        content = _Content(sheet, self.layout)
        for _ in self._archive.parse(_CONTENT, content):
            while content.rows:
                row, times = content.rows.pop(0)
                for line in range(row.line, row.line + times):
                    yield row._replace(line=line)


class _Content:
    """The names of the sheets, and the rows of one that are whole, as far as the content was parsed.

    Each row stands with the number of rows like it.
    """

    def __init__(self, sheet: str | None, layout: Layout) -> None:
        self.sheets = list[Sheet]()
        self.rows = list[tuple[SheetRow, int]]()
        self._sheet, self._layout = sheet, layout
        self._style = ""
        self._flat_rows, self._hidden_tables = set[str](), set[str]()
        self._depth = 0  # of tables, as a cell may hold one
        self._is_read = False
        self._line, self._columns, self._column = 1, 0, 0
        self._row = list[str]()
        self._times = self._cell_times = 1
        self._is_hidden = False
        self._groups = list[bool]()
        self._cell: Mapping[str, str] = {}
        self._texts = CellTexts()
        self._paragraphs = self._skipped = 0
        self._in_paragraph = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "table":
            self._depth += 1
            if self._depth == 1:
                self._start_table(_local(attributes))
        elif self._is_read and self._depth == 1:
            self._start_in_sheet(name, attributes)
        elif name == "style":
            self._style = _local(attributes).get("name", "")
        elif name == "table-row-properties" and is_flat(_local(attributes).get("row-height", "")):
            self._flat_rows.add(self._style)
        elif name == "table-properties" and _local(attributes).get("display") == "false":
            self._hidden_tables.add(self._style)

    def _start_table(self, attributes: Mapping[str, str]) -> None:
        name = attributes.get("name", "")
        self.sheets.append(Sheet(name, attributes.get("style-name") in self._hidden_tables))
        self._is_read = name == self._sheet

    def _start_in_sheet(self, name: str, found: Mapping[str, str]) -> None:
        if name == "p" and not self._skipped:
            if self._paragraphs:
                self._texts.add("\n")
            self._paragraphs += 1
            self._in_paragraph = True
        elif name in _CELLS:
            self._cell = _local(found)
            self._cell_times = _count(self._cell, "number-columns-repeated")
            rows = _count(self._cell, "number-rows-spanned")
            self._layout.merge(self._line, self._column, self._line + rows - 1)
        elif name == "table-row":
            attributes = _local(found)
            self._row, self._column = [], 0
            self._times = _count(attributes, "number-rows-repeated")
            hidden = attributes.get("visibility") in _HIDDEN or attributes.get("style-name") in self._flat_rows
            self._is_hidden = hidden or any(self._groups)
        elif name == "table-column":
            attributes = _local(found)
            count = _count(attributes, "number-columns-repeated")
            if attributes.get("visibility") in _HIDDEN or any(self._groups):
                self._layout.hide_columns(self._columns, count)
            self._columns += count
        elif name in _GROUPS:
            self._groups.append(_local(found).get("display") == "false")
        elif name in {"annotation", "shape"}:  # comments and drawings
            self._skipped += 1
        elif self._in_paragraph and not self._skipped:
            spaces = min(_count(_local(found), "c"), MAX_COLUMNS)
            self._texts.add({"s": " " * spaces, "tab": "\t", "line-break": "\n"}.get(name, ""))

    def end(self, name: str) -> None:
        if name == "table":
            self._depth -= 1
            self._is_read = self._is_read and self._depth > 0
        elif not self._is_read or self._depth > 1:
            return
        elif name == "p" and not self._skipped:
            self._in_paragraph = False
        elif name in _CELLS:
            text = _value(self._cell, self._texts.taken())
            self._paragraphs = 0
            # Empty cells are repeated to the end of a row.
            for at in range(self._cell_times) if text.strip() else ():
                self._layout.place(self._row, self._line, self._column + at, text)
            self._column += self._cell_times
        elif name == "table-row":
            if self._row:
                self.rows.append((SheetRow(self._line, self._row, self._is_hidden), self._times))
            self._line += self._times
            if self._row and self._line > MAX_ROWS + 1:
                raise CatalogueError(f"the sheet has more than {MAX_ROWS:,} rows: save it as CSV")
        elif name in _GROUPS:
            self._groups.pop()
        elif name in {"annotation", "shape"}:
            self._skipped -= 1

    def text(self, text: str) -> None:
        if self._in_paragraph and not self._skipped:
            self._texts.add(text)


def _local(attributes: Mapping[str, str]) -> Mapping[str, str]:
    return {name.rpartition(":")[2]: value for name, value in attributes.items()}


def _count(attributes: Mapping[str, str], name: str) -> int:
    return max(1, int(attributes.get(name, "1")))


def _value(cell: Mapping[str, str], text: str) -> str:
    """The text of a cell: a number's value, unless the displayed text says more."""
    match cell.get("value-type", ""):
        case "float" if text.isdigit() and text.startswith("0"):
            return text
        case "float":
            return number_text(float(cell["value"]))
        case "percentage":
            return number_text(float(cell["value"]), _PERCENT)
        case "currency":
            return number_text(float(cell["value"]), NumberFormat(currency=cell.get("currency", "")))
        case "date":
            return cell["date-value"].removesuffix("Z").removesuffix(_MIDNIGHT)
        case "boolean":
            return cell["boolean-value"]
        case "error":
            return ""
        case "string":
            return text or cell.get("string-value", "")
        case _:
            return text
