"""Reads the rows of a CSV, of one sheet of a workbook or of a JSON list, as texts with the numbers of their lines.

An encoding that `charset-normalizer` finds, of no Unicode file, is a guess: a cell that was read by it is shown.
"""

import codecs
import csv
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final, Protocol

from charset_normalizer import from_bytes

from indexer.catalogue.sheets.formats import format_of, unicode_form
from indexer.catalogue.sheets.spooled import HiddenRows, SpooledFile
from indexer.catalogue.sheets.workbooks.rows import NumberedCells
from indexer.records.problems import MAX_SHOWN, CatalogueError

_UTF8: Final = "utf-8-sig"
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
_FIRST_LINES: Final = 20
# A first line by which spreadsheets state the delimiter; it belongs to no row.
_STATED_DELIMITER: Final = re.compile(r"sep=([,;\t|])(?:\r\n|\r|\n)", re.IGNORECASE)

_NAMES: Final = {"workbook": "a workbook", "json": "JSON"}


class SheetFile(Protocol):
    """The rows of a file. Reading raises CatalogueError where the file can't be read in its apparent format."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def format(self) -> Mapping[str, str]:
        """How the file is read, by words of our own, such as `encoding`."""

    @property
    def notes(self) -> Sequence[str]:
        """What was read in a way that nobody may expect, or not at all; whole once the rows were read."""

    def rows(self) -> Iterator[NumberedCells]:
        """The rows that are not blank, the header first, each with the number of its first line, from 1."""


@contextmanager
def opened_sheet(
    path: Path,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    hidden_rows: HiddenRows | None = None,
    header_row: int | None = None,
) -> Iterator[SheetFile]:
    """Open a CSV in this encoding, a workbook at the sheet of this name, or a JSON list.

    `header_row` is the number of the row with the names of a CSV's columns, by which its delimiter is found.

    Raises CatalogueError if the file can't be read, is not of the kind for which something is stated, or has hidden
    rows and nothing says what becomes of them.
    """
    with _reading(path):
        found = format_of(path)
        if found != "csv" and encoding is not None:
            raise CatalogueError(f"{path} is {_NAMES[found]}, which has no encoding: leave --encoding out")
        if found != "workbook" and sheet is not None:
            raise CatalogueError(f"{path} is not a workbook, so it has no sheets: leave --sheet out")
        if found != "workbook" and hidden_rows is not None:
            raise CatalogueError(f"{path} is not a workbook, so it has no hidden rows: leave --hidden-rows out")
    if found == "csv":
        yield CsvFile(path, encoding, header_row)
        return
    with TemporaryFile("w+", encoding="utf-8") as spool:
        yield SpooledFile(path, spool, sheet, hidden_rows)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeError as error:
        encoding = getattr(error, "encoding", "UTF-16")
        raise CatalogueError(
            f"{path} holds bytes that are not {encoding}: name its encoding by --encoding, or save it as UTF-8"
        ) from error
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error


class CsvFile:
    """The rows of a CSV, whose encoding and delimiter are found."""

    def __init__(self, path: Path, encoding: str | None, header_row: int | None = None) -> None:
        self.path = path
        self.notes: Sequence[str] = ()
        with _reading(path):
            self._encoding, *others = _encodings_of(path) if encoding is None else (_named(encoding),)
        with _reading(path), path.open(encoding=self._encoding, newline="") as file:
            sample = file.read(_SAMPLE)
        said = _STATED_DELIMITER.match(sample)
        self._lines_before = 0 if said is None else 1
        self._delimiter = _delimiter(sample, header_row or 1) if said is None else said[1]
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

    def rows(self) -> Iterator[NumberedCells]:
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
        if form := unicode_form(file.read(_SAMPLE)):
            return (form,)
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


def _delimiter(sample: str, header_row: int) -> str:
    """The delimiter that the csv module finds, if the header has it; else the most frequent one of the header.

    Where the header has none, it is a title: then the one that most of the first lines have.
    """
    lines = sample.splitlines()[header_row - 1 :]
    header, *others = lines or [""]
    try:
        found = csv.Sniffer().sniff("\n".join(lines), _DELIMITERS).delimiter
    except csv.Error:
        found = ""
    if found and found in header:
        return found
    first = [line for line in others[:_FIRST_LINES] if line]
    return max(_DELIMITERS, key=lambda one: (header.count(one), sum(one in line for line in first)))
