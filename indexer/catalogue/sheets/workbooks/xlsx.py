"""Reads the sheets of an .xlsx (ECMA-376, also its strict form) row by row."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from indexer.catalogue.sheets.workbooks.archive import Archive
from indexer.catalogue.sheets.workbooks.numbers import BUILT_IN, GENERAL, NumberFormat, number_format, number_text
from indexer.catalogue.sheets.workbooks.rows import CellTexts, Layout, Sheet, SheetRow, column_of, is_flat
from indexer.records.problems import CatalogueError

_TRUE: Final = frozenset({"1", "true", "on"})
_REFERENCE: Final = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
# How a character that XML does not allow is written.
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
_MIDNIGHT: Final = "T00:00:00"


class _Elements:
    """The elements of a small member with their attributes, without texts."""

    def __init__(self, archive: Archive, member: str) -> None:
        self.found = list[tuple[str, Mapping[str, str]]]()
        for _ in archive.parse(member, self):
            pass

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self.found.append((name, attributes))

    def end(self, name: str) -> None:
        self.found.append((f"/{name}", {}))

    def text(self, text: str) -> None:
        pass


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
        for name, attributes in _Elements(archive, main[1]).found:
            if name == "workbookPr":
                self._from_1904 = attributes.get("date1904") in _TRUE
            elif name == "sheet":
                member = by_id.get(next((value for key, value in attributes.items() if key.endswith(":id")), ""))
                if member is not None:  # a sheet of a chart has no cells
                    self._members[attributes["name"]] = member
                    sheets.append(Sheet(attributes["name"], attributes.get("state", "visible") != "visible"))
        self.sheets = tuple(sheets)

    def rows(self, sheet: str) -> Iterator[SheetRow]:
        strings, formats = list[str](), list[NumberFormat]()
        for _, member in self._parts.get("sharedStrings", ()):
            table = _Strings()
            for _ in self._archive.parse(member, table):
                pass
            strings = table.strings
        for _, member in self._parts.get("styles", ()):
            formats = _formats(self._archive, member)
        cells = _Cells(self.layout, strings, formats, from_1904=self._from_1904)
        for _ in self._archive.parse(self._members[sheet], cells):
            yield from cells.rows
            cells.rows.clear()
        yield from cells.rows


def _targets(archive: Archive, member: str) -> Mapping[str, list[tuple[str, str]]]:
    """The ids and members that a member refers to, by type."""
    folder, name = posixpath.split(member)
    relations = posixpath.join(folder, "_rels", f"{name}.rels")
    found = dict[str, list[tuple[str, str]]]()
    for element, attributes in _Elements(archive, relations).found if relations in archive.names else ():
        if element == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, attributes["Target"])).lstrip("/")
            found.setdefault(attributes["Type"].rpartition("/")[2], []).append((attributes["Id"], target))
    return found


def _formats(archive: Archive, member: str) -> list[NumberFormat]:
    """The formats of the styles of cells, by their numbers."""
    known = dict[int, NumberFormat](BUILT_IN)
    styles = list[NumberFormat]()
    is_of_cells = False
    for name, attributes in _Elements(archive, member).found:
        if name == "numFmt":
            known[int(attributes["numFmtId"])] = number_format(attributes.get("formatCode", ""))
        elif name in {"cellXfs", "/cellXfs"}:
            is_of_cells = name == "cellXfs"
        elif name == "xf" and is_of_cells:
            styles.append(known.get(int(attributes.get("numFmtId", "0")), GENERAL))
    return styles


class _Strings:
    """The shared strings."""

    def __init__(self) -> None:
        self.strings = list[str]()
        self._texts = CellTexts()
        self._is_text = self._is_phonetic = False

    def start(self, name: str, _: Mapping[str, str]) -> None:
        self._is_phonetic = self._is_phonetic or name == "rPh"
        self._is_text = name == "t" and not self._is_phonetic

    def end(self, name: str) -> None:
        self._is_text = False
        if name == "rPh":
            self._is_phonetic = False
        elif name == "si":
            self.strings.append(_unescaped(self._texts.taken()))

    def text(self, text: str) -> None:
        if self._is_text:
            self._texts.add(text)


class _Cells:
    """The rows of a sheet that are whole, as far as it was parsed."""

    def __init__(self, layout: Layout, strings: list[str], formats: list[NumberFormat], *, from_1904: bool) -> None:
        self.rows = list[SheetRow]()
        self._layout, self._strings, self._formats, self._from_1904 = layout, strings, formats, from_1904
        self._line, self._column = 0, -1
        self._row = list[str]()
        self._is_hidden = self._is_text = self._is_phonetic = False
        self._type, self._style = "n", 0
        self._texts = CellTexts()

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "c":
            reference = attributes.get("r")
            self._column = self._column + 1 if reference is None else _position(reference)[1]
            self._type, self._style = attributes.get("t", "n"), int(attributes.get("s", "0"))
        elif name in {"v", "t"}:
            self._is_text = not self._is_phonetic
        elif name == "row":
            self._line, self._column, self._row = int(attributes.get("r", self._line + 1)), -1, []
            self._is_hidden = attributes.get("hidden") in _TRUE or is_flat(attributes.get("ht", ""))
        elif name == "rPh":
            self._is_phonetic = True
        elif name == "col" and (attributes.get("hidden") in _TRUE or is_flat(attributes.get("width", ""))):
            start = int(attributes["min"])
            self._layout.hide_columns(start - 1, int(attributes["max"]) + 1 - start)
        elif name == "mergeCell":
            first, _, last = attributes["ref"].partition(":")
            (top, column), (bottom, _) = _position(first), _position(last or first)
            self._layout.merge(top, column, bottom)

    def end(self, name: str) -> None:
        if name in {"v", "t"}:
            self._is_text = False
        elif name == "c":
            if text := self._texts.taken():
                self._layout.place(self._row, self._line, self._column, self._value(text))
        elif name == "row":
            if self._row:
                self.rows.append(SheetRow(self._line, self._row, self._is_hidden))
        elif name == "rPh":
            self._is_phonetic = False

    def text(self, text: str) -> None:
        if self._is_text:
            self._texts.add(text)

    def _value(self, text: str) -> str:
        match self._type:
            case "s":
                return self._strings[int(text)]
            case "n":
                shown = self._formats[self._style] if self._style < len(self._formats) else GENERAL
                return number_text(float(text), shown, from_1904=self._from_1904)
            case "b":
                return "true" if text in _TRUE else "false"
            case "d":
                return text.removesuffix("Z").removesuffix(_MIDNIGHT)
            case "e":
                return ""
            case _:
                return _unescaped(text)


@lru_cache(maxsize=4_096)
def _position(reference: str) -> tuple[int, int]:
    """The row, from 1, and the column, from 0, of a cell such as B3."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise CatalogueError(f"the workbook is damaged: it has a cell {reference[:20]!r}")
    return int(found[2]), column_of(found[1])


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
