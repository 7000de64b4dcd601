"""Types shared by the readers of workbooks: sheets, rows and reports."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from indexer.records.problems import CatalogueError

# Cells further right belong to no list; they are counted, and not read.
MAX_COLUMNS: Final = 1_024
MAX_ROWS: Final = 1_048_576
_MAX_MERGED: Final = 100_000
_NUMBER: Final = re.compile(r"\d*\.?\d+")
# Units of a height, as parts of a point.
_POINTS: Final = {"cm": 28.35, "mm": 2.835, "in": 72.0, "pc": 12.0, "px": 0.75}


# The number of a row's first line, from 1, and its cells.
NumberedCells = tuple[int, list[str]]


class Sheet(NamedTuple):
    """A sheet of a workbook."""

    name: str
    is_hidden: bool


class SheetRow(NamedTuple):
    """A row that is not blank, with its number from 1."""

    line: int
    cells: list[str]
    is_hidden: bool = False


@dataclass(slots=True)
class Layout:
    """What is known of a sheet once its rows were read.

    `merged` are cells of several rows, each with its first row, its column and its last row. `strays` are cells that
    are too far right to be read; `first_stray` names one.
    """

    merged: list[tuple[int, int, int]] = field(default_factory=list)
    hidden_columns: set[int] = field(default_factory=set)
    strays: int = 0
    first_stray: str = ""

    def merge(self, top: int, column: int, bottom: int) -> None:
        """Note a merged cell of several rows."""
        if bottom > top and column < MAX_COLUMNS:
            self.merged.append((top, column, bottom))
        if len(self.merged) > _MAX_MERGED:
            raise CatalogueError(f"the sheet has over {_MAX_MERGED:,} merged cells: save it as CSV")

    def hide_columns(self, first: int, count: int) -> None:
        """Note hidden columns, from 0."""
        self.hidden_columns.update(range(first, min(first + count, MAX_COLUMNS)))

    def place(self, cells: list[str], line: int, column: int, text: str) -> None:
        """Put the text of a cell into its row."""
        if not text.strip():
            return
        if column >= MAX_COLUMNS:
            self.strays += 1
            self.first_stray = self.first_stray or f"{letters_of(column)}{line}"
            return
        cells.extend([""] * (column + 1 - len(cells)))
        cells[column] = text


class Book(Protocol):
    """A workbook."""

    layout: Layout

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """The sheets that have cells, in their order."""

    def rows(self, sheet: str) -> Iterator[SheetRow]:
        """The rows of a sheet; the layout is whole after the last one."""


def is_flat(height: str) -> bool:
    """Whether a height, in points or another unit, leaves a row invisible."""
    found = _NUMBER.match(height)
    return found is not None and float(found[0]) * _POINTS.get(height[found.end() :].strip(), 1.0) < 1


def column_of(letters: str) -> int:
    """The number, from 0, of a column by its letters."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number - 1


def letters_of(column: int) -> str:
    """The letters of a column by its number, from 0."""
    letters = ""
    number = column + 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
