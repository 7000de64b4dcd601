"""Reads the rows of a CSV, or of one sheet of a workbook, as texts with the numbers of their lines.

The format is found by the file's first bytes, never by its name. The encoding of a CSV that is neither UTF-8 nor UTF-16
is found by `charset-normalizer`. That is a guess: the caller shows it with a cell that was read by it.
"""

import codecs
import csv
import mmap
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from charset_normalizer import from_bytes
from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from indexer.records.problems import MAX_SHOWN, CatalogueError
from indexer.sources.ndjson import WORKBOOK_MARKS

_UTF8: Final = "utf-8-sig"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
# What spreadsheets write on the systems of the world, the most frequent first.
_CODE_PAGES: Final = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874",
    "cp932", "gb18030", "big5", "cp949", "mac_roman", "cp850",
)  # fmt: skip
# A character of UTF-8, as the group, or another byte that is not ASCII.
_BEYOND_ASCII: Final = re.compile(
    rb"([\xc2-\xdf][\x80-\xbf]|(?:\xe0[\xa0-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]|\xed[\x80-\x9f])[\x80-\xbf]"
    rb"|(?:\xf0[\x90-\xbf]|[\xf1-\xf3][\x80-\xbf]|\xf4[\x80-\x8f])[\x80-\xbf]{2})|[\x80-\xff]"
)
_EXAMINED: Final = 20_000
# The euro sign of the code pages of Windows beside a digit.
_EURO: Final = re.compile(rb"\d ?\x80|\x80 ?\d")
# Bytes around a byte that is not ASCII, by which its encoding is found.
_AROUND: Final = 60
_BLOCK: Final = 1024 * 1024
_SAMPLE: Final = 64 * 1024
_DELIMITERS: Final = ",;\t|"
# A first line by which spreadsheets state the delimiter; it belongs to no row.
_STATED_DELIMITER: Final = re.compile(r"sep=([,;\t|])(?:\r\n|\r|\n)", re.IGNORECASE)

# What would be ambiguous as a text.
_THREE_DECIMALS: Final = re.compile(r"\d+\.\d{3}")

Row = tuple[int, list[str]]


class SheetFile(Protocol):
    """The rows of a file. Reading raises CatalogueError where the file can't be read as what it seems to be."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def format(self) -> Mapping[str, str]:
        """How the file is read, by words of our own, such as `encoding`."""

    def rows(self) -> Iterator[Row]:
        """The rows that are not blank, the header first, each with the number of its first line, from 1."""


def opened_sheet(path: Path, *, encoding: str | None = None, sheet: str | None = None) -> SheetFile:
    """Open a CSV or a workbook, in this encoding, or at the sheet of this name, where one is named.

    Raises CatalogueError if the file can't be read, or is not of the kind for which something is named.
    """
    with _reading(path):
        with path.open("rb") as file:
            is_workbook = file.read(4).startswith(WORKBOOK_MARKS)
        if is_workbook and encoding is not None:
            raise CatalogueError(f"{path} is a workbook, which has no encoding: leave --encoding out")
        if not is_workbook and sheet is not None:
            raise CatalogueError(f"{path} is no workbook, so that it has no sheets: leave --sheet out")
        return Workbook(path, sheet) if is_workbook else CsvFile(path, encoding)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except CalamineError as error:
        raise CatalogueError(
            f"{path} is no workbook that can be read ({error}): save it as .xlsx without a password, or as CSV"
        ) from error
    except UnicodeError as error:
        encoding = getattr(error, "encoding", "UTF-16")
        raise CatalogueError(
            f"{path} holds bytes that are not {encoding}: name its encoding by --encoding, or save it as UTF-8"
        ) from error
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error


class CsvFile:
    """The rows of a CSV, whose encoding and delimiter are found."""

    def __init__(self, path: Path, encoding: str | None) -> None:
        self.path = path
        self._encoding, *others = _encodings_of(path) if encoding is None else (_named(encoding),)
        with _reading(path), path.open(encoding=self._encoding, newline="") as file:
            sample = file.read(_SAMPLE)
        said = _STATED_DELIMITER.match(sample)
        self._lines_before = 0 if said is None else 1
        self._delimiter = _delimiter(sample) if said is None else said[1]
        self.format = {"encoding": self._encoding.removesuffix("-sig"), "delimiter": self._delimiter}
        if encoding is None and self._encoding in _CODE_PAGES:
            self._show_code_page(others)

    def _show_code_page(self, others: Sequence[str]) -> None:
        """Name a cell that shows whether the encoding is right, if possible one that the others read differently."""
        cells = (_excerpt(cell.strip()) for _, row in self.rows() for cell in row if not cell.isascii())
        sample, readings = "", dict[str, str]()
        for cell in islice(cells, _EXAMINED):
            raw = cell.encode(self._encoding)
            readings = {page: text for page in others if (text := raw.decode(page, "replace")) != cell}
            sample = cell if readings else sample or cell
            if readings or not others:
                break
        self.format["found_by"] = sample
        if readings:
            self.format["other_readings"] = ", ".join(f"{text!r} in {page}" for page, text in readings.items())

    def rows(self) -> Iterator[Row]:
        """As of SheetFile."""
        with _reading(self.path), self.path.open(encoding=self._encoding, newline="") as file:
            for _ in range(self._lines_before):
                next(file)
            # Strict, as a quotation mark without its pair would take the rows after it into one cell.
            reader = csv.reader(file, delimiter=self._delimiter, strict=True)
            before = self._lines_before
            try:
                for row in reader:
                    # Empty lines, of which there may be millions, are passed over first.
                    if row and any(map(str.strip, row)):
                        yield before + 1, row
                    before = self._lines_before + reader.line_num
            except csv.Error as error:
                raise CatalogueError(
                    f"{self.path}, in the row that begins in line {before + 1}: a quoted cell does not end before the"
                    f' delimiter, or is too long ({error}): write " as "" within quoted cells'
                ) from error


class Workbook:
    """The rows of the sheet of this name of a workbook; by default of the first that is visible."""

    def __init__(self, path: Path, sheet: str | None) -> None:
        self.path = path
        self._book = CalamineWorkbook.from_path(path)
        known = [one for one in self._book.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
        shown = [one.name for one in known if one.visible == SheetVisibleEnum.Visible]
        name = next(iter(shown), None) if sheet is None else sheet
        if name not in {one.name for one in known}:
            raise CatalogueError(f"{path} has no sheet {sheet!r}: name one of {', '.join(map(repr, shown))}")
        self._sheet = str(name)
        self.format = {"sheet": self._sheet}
        if others := [one for one in shown if one != name]:
            self.format["other_sheets"] = ", ".join(map(repr, others))

    def rows(self) -> Iterator[Row]:
        """As of SheetFile."""
        with _reading(self.path):
            sheet = self._book.get_sheet_by_name(self._sheet)
            # A merged cell has its value in its first row alone, and says it of all its rows.
            ranges = defaultdict[int, list[tuple[int, int]]](list)
            for (top, column), (bottom, _) in sheet.merged_cell_ranges or ():
                ranges[top].append((column, bottom))
            merged = dict[int, tuple[int, str]]()
            for at, cells in enumerate(sheet.iter_rows() if sheet.start else ()):
                row = [_text(cell) for cell in cells]
                if any(map(str.strip, row)):
                    for column, (bottom, text) in merged.items():
                        if at <= bottom:
                            row[column] = text
                    yield at + 1, row
                merged.update({column: (bottom, row[column]) for column, bottom in ranges[at]})


def _text(cell: object) -> str:
    """The text that a CSV would hold for a cell: whole numbers without a point, times as in ISO 8601."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return f"{cell:.0f}"
    if isinstance(cell, float):
        # The digits that a spreadsheet shows, without the noise of a formula; 1.234 is never read as 1234.
        text = f"{cell:.15g}"
        return f"{text}0" if _THREE_DECIMALS.fullmatch(text) else text
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell)


def _excerpt(cell: str) -> str:
    """As much of a cell as may be shown (V1), with its first character beyond ASCII."""
    at = next((at for at, character in enumerate(cell) if not character.isascii()), 0)
    start = max(0, at - MAX_SHOWN // 2)
    return cell[start : start + MAX_SHOWN]


def _named(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        b"".decode(name)
    except LookupError as error:
        raise CatalogueError(
            f"--encoding {encoding!r} is none that is known: name one such as cp1252 or utf-8"
        ) from error
    return _UTF8 if name == "utf-8" else name


def _encodings_of(path: Path) -> Sequence[str]:
    """UTF-8 or UTF-16 where the file is that, else the code pages that fit it best, the most frequent first.

    Raises CatalogueError where none is found, or where the file is UTF-8 but for a few bytes: in any other encoding,
    all its other characters would be wrong.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        if file.read(2) in _UTF16_MARKS:
            return ("utf-16",)
        file.seek(0)
        try:
            while block := file.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _code_pages(path, content)
        return (_UTF8,)


def _code_pages(path: Path, content: mmap.mmap) -> Sequence[str]:
    as_utf8, wrong, sample, until = 0, -1, b"", 0
    for others, found in enumerate(_BEYOND_ASCII.finditer(content)):
        if found[1]:
            as_utf8 += 1
        elif wrong < 0:
            wrong = found.start()
        if found.start() >= until and len(sample) < _SAMPLE:
            until = found.start() + _AROUND
            sample += content[max(0, found.start() - _AROUND) : until] + b"\n"
        if others > _EXAMINED and wrong >= 0:
            break
    if as_utf8 > 9 * (others + 1 - as_utf8):
        line = content[:wrong].count(b"\n") + 1
        raise CatalogueError(
            f"{path} is UTF-8, but for its line {line}: correct that line, or name its encoding by --encoding"
        )
    # A sheet of prices may have no other byte beyond ASCII than the euro sign, which alone is in no language.
    pages = [page for page in _CODE_PAGES if not _EURO.search(sample) or b"\x80".decode(page, "replace") == "\u20ac"]
    matches = from_bytes(sample, cp_isolation=pages)
    best = matches.best()
    if best is None:
        raise CatalogueError(
            f"{path} is not UTF-8, and no other encoding is found: name it by --encoding, such as cp1252, or save the"
            " file as UTF-8"
        )
    fitting = {
        page
        for match in matches
        if (match.chaos, match.coherence) == (best.chaos, best.coherence)
        for page in match.could_be_from_charset
    }
    return [page for page in _CODE_PAGES if page in fitting] or [best.encoding]


def _delimiter(sample: str) -> str:
    """The delimiter that the csv module finds, if the header has it; else the most frequent one of the header."""
    header = sample.partition("\n")[0]
    try:
        found = csv.Sniffer().sniff(sample, _DELIMITERS).delimiter
    except csv.Error:
        found = ""
    return found if found and found in header else max(_DELIMITERS, key=header.count)
