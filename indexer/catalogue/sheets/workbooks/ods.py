"""Reads the sheets of an .ods (OpenDocument) row by row."""

from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element

from indexer.catalogue.sheets.workbooks.archive import Archive
from indexer.catalogue.sheets.workbooks.numbers import NumberFormat, number_text
from indexer.catalogue.sheets.workbooks.rows import MAX_COLUMNS, MAX_ROWS, Layout, Sheet, SheetRow, is_flat
from indexer.records.problems import CatalogueError

_CONTENT: Final = "content.xml"
_HIDDEN: Final = frozenset({"collapse", "filter"})
_CELLS: Final = frozenset({"table-cell", "covered-table-cell"})
# Comments, drawings, and tables in cells.
_NO_TEXT: Final = frozenset({"annotation", "shape", "table"})
_GROUPS: Final = frozenset({"table-row-group", "table-column-group"})
_PERCENT: Final = NumberFormat(is_percent=True)
_MIDNIGHT: Final = "T00:00:00"


class Ods:
    """As of Book."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._flat_rows, self._hidden_tables = set[str](), set[str]()
        self.layout = Layout()
        self.sheets = tuple(dict.fromkeys(sheet for sheet, *_ in self._parts()))

    def _parts(self) -> Iterator[tuple[Sheet, bool, Element]]:
        """The rows and columns of all sheets, each with its sheet, and whether that or a group hides it."""
        for outer, element in self._archive.elements(_CONTENT, "style", "table-column", "table-row"):
            tables = [one for one in outer if one.tag == "table"]
            if element.tag == "style":
                for form in element:
                    if form.tag == "table-row-properties" and is_flat(form.get("row-height", "")):
                        self._flat_rows.add(element.get("name", ""))
                    elif form.tag == "table-properties" and form.get("display") == "false":
                        self._hidden_tables.add(element.get("name", ""))
            elif len(tables) == 1:  # a cell or a drawing may hold a table
                sheet = Sheet(tables[0].get("name", ""), tables[0].get("style-name") in self._hidden_tables)
                is_grouped = any(one.tag in _GROUPS and one.get("display") == "false" for one in outer)
                yield sheet, is_grouped or element.get("visibility") in _HIDDEN, element

    def rows(self, sheet: str) -> Iterator[SheetRow]:
        line, columns = 1, 0
        for found, is_hidden, element in self._parts():
            if found.name != sheet:
                continue
            if element.tag == "table-column":
                count = _count(element, "number-columns-repeated")
                if is_hidden:
                    self.layout.hide_columns(columns, count)
                columns += count
                continue
            cells, times = self._cells(element, line), _count(element, "number-rows-repeated")
            if cells and line + times > MAX_ROWS + 1:
                raise CatalogueError(f"the sheet has more than {MAX_ROWS:,} rows: save it as CSV")
            for at in range(line, line + times) if cells else ():
                yield SheetRow(at, cells, is_hidden or element.get("style-name") in self._flat_rows)
            line += times

    def _cells(self, row: Element, line: int) -> list[str]:
        cells, column = list[str](), 0
        for cell in row:
            if cell.tag in _CELLS:
                self.layout.merge(line, column, line + _count(cell, "number-rows-spanned") - 1)
                text, times = _value(cell.attrib, "\n".join(_paragraphs(cell))), _count(cell, "number-columns-repeated")
                # Empty cells are repeated to the end of a row.
                for at in range(column, column + times) if text.strip() else ():
                    self.layout.place(cells, line, at, text)
                column += times
        return cells


def _paragraphs(element: Element) -> Iterator[str]:
    for part in element:
        if part.tag == "p":
            yield _text(part)
        elif part.tag not in _NO_TEXT:
            yield from _paragraphs(part)


def _text(element: Element) -> str:
    match element.tag:
        case "s":
            return " " * min(_count(element, "c"), MAX_COLUMNS)
        case "tab":
            return "\t"
        case "line-break":
            return "\n"
    parts = (("" if part.tag in _NO_TEXT else _text(part)) + (part.tail or "") for part in element)
    return "".join([element.text or "", *parts])


def _count(element: Element, name: str) -> int:
    return max(1, int(element.get(name, "1")))


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
