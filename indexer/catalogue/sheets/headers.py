"""Finds the row that names the columns: the first one, the one of a number, or none."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from indexer.catalogue.sheets.cells import WORDS, plain
from indexer.catalogue.sheets.columns import FIELDS
from indexer.catalogue.sheets.files import CsvFile, SheetFile
from indexer.catalogue.sheets.workbooks.rows import NumberedCells
from indexer.records.problems import CatalogueError, shown

# Rows among which the names of columns are looked for.
_EXAMINED: Final = 20
_LISTED: Final = 6
# Some networks put a record before the list, and one behind it.
_BEFORE: Final = frozenset({"hdr"})
_BEHIND: Final = frozenset({"trl", "tlr", "trailer", "ftr"})
_HOST: Final = re.compile(r"(?:https?://|www\.)\S+|[^\s/@.]+(?:\.[^\s/@.]+)*\.[^\W\d]{2,}(?:/\S*)?", re.IGNORECASE)
# Words at the end of a name such as tags.url that are not top-level domains.
_NO_HOST: Final = re.compile(r"[\w.]+\.(?:url|uri|href|domain|homepage|hostname)", re.IGNORECASE)
_VALUES: Final = (
    _HOST,
    re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+"),
    re.compile(r"\d{4}([./-])\d{1,2}\1\d{1,2}(?:[ T].*)?|\d{1,2}([./-])\d{1,2}\2\d{2,4}(?:[ T].*)?"),
    re.compile(r"[-+]?\d[\d.,' ]*\s*[%€$£]|[€$£]\s*\d[\d.,' ]*|[-+]?\d+[.,]\d+"),
)


class HeadedFile:
    """A sheet whose first row names the columns: as of SheetFile.

    `header_row` is the number of the row that names them; with `no_header` their names are numbers, from 1. Raises
    CatalogueError where the first row hardly names columns and neither is stated.
    """

    def __init__(self, file: SheetFile, kind: str, *, header_row: int | None, no_header: bool) -> None:
        self._file, self._header_row, self._no_header = file, header_row, no_header
        self.path = file.path
        self.format = file.format
        first = list(islice(file.rows(), _EXAMINED))
        self._known = frozenset(
            name
            for field, known in FIELDS[kind].items()
            for name in (*known.names.split(), *WORDS.get(f"{field}_column", ()))
        )
        self._has_records = bool(first) and plain(first[0][1][0]) in _BEFORE
        rows = first[self._has_records :]
        self._width = max((len(row) for _, row in rows), default=0)
        self._trailer = ""
        self._beside = self._first_beside = 0
        # A workbook states no cells behind the last one of a row.
        self._is_padded = not isinstance(file, CsvFile)
        # Row 0 has the names of the fields of a JSON list, such as tags.website.
        if header_row is None and not no_header and rows and rows[0][0]:
            self._refuse_no_names(rows)

    @property
    def notes(self) -> Sequence[str]:
        notes = [*self._file.notes]
        if self._has_records:
            notes.append(
                f"the records HDR and {self._trailer} around the list were ignored"
                if self._trailer
                else "the record HDR before the list was ignored"
            )
        if self._beside:
            rows = f"{self._beside:,} rows" if self._beside > 1 else "1 row"
            notes.append(f"{rows} with cells right of all columns alone ignored, first {self._first_beside}")
        return notes

    def rows(self) -> Iterator[NumberedCells]:
        rows = self._listed()
        if self._no_header:
            header: NumberedCells | None = (0, [str(number) for number in range(1, self._width + 1)])
        elif self._header_row is None:
            header = next(rows, None)
        else:
            header = next((row for row in rows if row[0] >= self._header_row), None)
            if header is None or header[0] != self._header_row:
                raise CatalogueError(f"{self.path} has no row {self._header_row}, or it is blank: name another one")
        if header is None:
            return
        yield header
        width, self._beside = len(header[1]), 0
        for line, row in rows:
            if any(map(str.strip, row[:width])):
                yield line, [*row, *([""] * (width - len(row) if self._is_padded else 0))]
            else:
                self._first_beside = self._first_beside if self._beside else line
                self._beside += 1

    def _listed(self) -> Iterator[NumberedCells]:
        """The rows without the records before and behind the list."""
        rows = self._file.rows()
        if not self._has_records:
            yield from rows
            return
        next(rows, None)
        waiting: NumberedCells | None = None
        for row in rows:
            if waiting is not None:
                yield waiting
            waiting = row
        if waiting is not None and plain(waiting[1][0]) in _BEHIND:
            self._trailer = waiting[1][0].strip()
        elif waiting is not None:
            yield waiting

    def _names_in(self, row: Sequence[str]) -> int:
        return sum(plain(cell) in self._known for cell in row)

    def _refuse_no_names(self, rows: Sequence[NumberedCells]) -> None:
        (line, header), *others = rows
        found = self._names_in(header)
        better = next((one for one in others if self._names_in(one[1]) > max(1, found)), None)
        if better is not None and (not found or sum(map(bool, map(str.strip, header))) == 1):
            raise CatalogueError(
                f"{self.path}: row {line} does not name columns ({_listed(header)}), and row {better[0]} does"
                f" ({_listed(better[1])}): say so by --header-row {better[0]}"
            )
        values = [cell for at, cell in enumerate(header) if _is_value(cell.strip(), at, others)]
        if values:
            raise CatalogueError(
                f"{self.path}: the first row looks like values ({_listed(values)}), not like names of columns: where"
                " none names them, --no-header calls them 1, 2, 3, to be mapped as by --map 1=name; where another row"
                " does, --header-row N takes row N"
            )


def _is_value(cell: str, at: int, others: Sequence[NumberedCells]) -> bool:
    """Whether a cell is a value, by its form, which most cells below it have as well."""
    if _NO_HOST.fullmatch(cell):
        return False
    form = next((form for form in _VALUES if form.fullmatch(cell)), None)
    below = [row[at].strip() for _, row in others if at < len(row) and row[at].strip()]
    return form is not None and 2 * sum(form.fullmatch(one) is not None for one in below) >= len(below)


def _listed(cells: Sequence[str]) -> str:
    named = [shown(cell.strip()) for cell in cells if cell.strip()]
    return ", ".join(named[:_LISTED]) + (", ..." if len(named) > _LISTED else "")
