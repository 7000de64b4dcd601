"""Reads the sheets of an .xlsx (ECMA-376, also its strict form) row by row."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final
from xml.etree.ElementTree import Element

from indexer.catalogue.sheets.workbooks.archive import Archive
from indexer.catalogue.sheets.workbooks.numbers import BUILT_IN, GENERAL, NumberFormat, number_format, number_text
from indexer.catalogue.sheets.workbooks.rows import Layout, Sheet, SheetRow, column_of, is_flat
from indexer.records.problems import CatalogueError

_TRUE: Final = frozenset({"1", "true", "on"})
_REFERENCE: Final = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
# How a character that XML does not allow is written.
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
_MIDNIGHT: Final = "T00:00:00"


class Xlsx:
    """As of Book."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.layout = Layout()
        (main, *_) = _targets(archive, "").get("officeDocument", [("", "xl/workbook.xml")])
        self._parts = _targets(archive, main[1])
        by_id = dict(self._parts.get("worksheet", ()))
        self._members = dict[str, str]()
        sheets = list[Sheet]()
        self._from_1904 = False
        for _, element in archive.elements(main[1], "workbookPr", "sheet"):
            if element.tag == "workbookPr":
                self._from_1904 = element.get("date1904") in _TRUE
            elif (member := by_id.get(element.get("id", ""))) is not None:  # a sheet of a chart has no cells
                self._members[element.attrib["name"]] = member
                sheets.append(Sheet(element.attrib["name"], element.get("state", "visible") != "visible"))
        self.sheets = tuple(sheets)

    def rows(self, sheet: str) -> Iterator[SheetRow]:
        parts, parse = self._parts, self._archive.elements
        strings = [
            _unescaped("".join(_texts(one)))
            for _, member in parts.get("sharedStrings", ())
            for _, one in parse(member, "si")
        ]
        formats = [one for _, member in parts.get("styles", ()) for one in _formats(self._archive, member)]
        line = 0
        for _, element in parse(self._members[sheet], "row", "col", "mergeCell"):
            if element.tag == "row":
                line = int(element.get("r", line + 1))
                cells = self._cells(element, line, strings, formats)
                if cells:
                    yield SheetRow(line, cells, element.get("hidden") in _TRUE or is_flat(element.get("ht", "")))
            elif element.tag == "mergeCell":
                first, _, last = element.attrib["ref"].partition(":")
                (top, column), (bottom, _) = _position(first), _position(last or first)
                self.layout.merge(top, column, bottom)
            elif element.get("hidden") in _TRUE or is_flat(element.get("width", "")):
                start = int(element.attrib["min"])
                self.layout.hide_columns(start - 1, int(element.attrib["max"]) + 1 - start)

    def _cells(self, row: Element, line: int, strings: Sequence[str], formats: Sequence[NumberFormat]) -> list[str]:
        cells, column = list[str](), -1
        for cell in row.iterfind("c"):
            reference = cell.get("r")
            column = column + 1 if reference is None else _position(reference)[1]
            if text := "".join(_texts(cell)):
                self.layout.place(cells, line, column, self._value(cell, text, strings, formats))
        return cells

    def _value(self, cell: Element, text: str, strings: Sequence[str], formats: Sequence[NumberFormat]) -> str:
        match cell.get("t", "n"):
            case "s":
                return strings[int(text)]
            case "n":
                style = int(cell.get("s", "0"))
                shown = formats[style] if style < len(formats) else GENERAL
                return number_text(float(text), shown, from_1904=self._from_1904)
            case "b":
                return "true" if text in _TRUE else "false"
            case "d":
                return text.removesuffix("Z").removesuffix(_MIDNIGHT)
            case "e":
                return ""
            case _:
                return _unescaped(text)


def _texts(element: Element) -> Iterator[str]:
    """The texts and the value of a cell, without how they are pronounced."""
    for part in element:
        if part.tag in {"v", "t"}:
            yield part.text or ""
        elif part.tag != "rPh":
            yield from _texts(part)


def _targets(archive: Archive, member: str) -> Mapping[str, list[tuple[str, str]]]:
    """The ids and members that a member refers to, by type."""
    folder, name = posixpath.split(member)
    relations = posixpath.join(folder, "_rels", f"{name}.rels")
    found = dict[str, list[tuple[str, str]]]()
    for _, element in archive.elements(relations, "Relationship") if relations in archive.names else ():
        if element.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, element.attrib["Target"])).lstrip("/")
            found.setdefault(element.attrib["Type"].rpartition("/")[2], []).append((element.attrib["Id"], target))
    return found


def _formats(archive: Archive, member: str) -> Iterator[NumberFormat]:
    known = dict[int, NumberFormat](BUILT_IN)
    for _, element in archive.elements(member, "numFmt", "cellXfs"):
        if element.tag == "numFmt":
            known[int(element.attrib["numFmtId"])] = number_format(element.get("formatCode", ""))
        else:
            yield from (known.get(int(style.get("numFmtId", "0")), GENERAL) for style in element.iter("xf"))


@lru_cache(maxsize=4_096)
def _position(reference: str) -> tuple[int, int]:
    """The row, from 1, and the column, from 0, of a cell such as B3."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise CatalogueError(f"the workbook is damaged: it has a cell {reference[:20]!r}")
    return int(found[2]), column_of(found[1])


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
