"""Reads a catalogue of shops from a CSV with a header.

A bad row is reported by its line and field, never by its value (V1). A value in another form, such as a country's name,
is converted to the form of the catalogue; nothing is guessed that the file does not state.
"""

import csv
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, TextIO

import pycountry
from anyascii import anyascii

from index_mappings.countries import COUNTRY_CODES
from index_mappings.documents import WORLDWIDE
from index_mappings.hosts import reduce_host
from indexer.catalogue.csv_columns import VISIBILITIES, Columns, Values, columns_of, position_of, stated_values
from indexer.records.problems import CatalogueError, Problem, RefusedRecordError
from indexer.records.shop import ShopRecord, validated

_SAMPLE: Final = 64 * 1024
_DELIMITERS: Final = ",;\t|"
# A first line by which spreadsheets state the delimiter; it belongs to no row.
_STATED_DELIMITER: Final = re.compile(r"sep=([,;\t|])(?:\r\n|\r|\n)", re.IGNORECASE)
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_MAX_ID: Final = 64
_MAX_SLUG: Final = 100
_NO_SLUG: Final = re.compile(r"[^a-z0-9]+")
_NO_ID: Final = re.compile(r"[^A-Za-z0-9-]")
_PLAIN: Final = frozenset({"id", "name", "domain", "visibility", "source"})
_WORLD: Final = frozenset({"WORLDWIDE", "GLOBAL", "INTERNATIONAL", "WORLD"})


class CsvShops:
    """The shops of one CSV; `delimiter` is the character between its cells."""

    def __init__(
        self, path: Path, *, stated: Sequence[str] = (), category: str | None = None, values: Sequence[str] = ()
    ) -> None:
        """Read the header; CatalogueError if there is none, or no column for name or domain.

        `stated` has `COLUMN=FIELD` each, `values` `COLUMN:VALUE=VISIBILITY` each; rows without a category get
        `category`.
        """
        self._path, self._category = path, category
        with self._opened() as file:
            sample = file.read(_SAMPLE)
        said = _STATED_DELIMITER.match(sample)
        self._lines_before_header = 0 if said is None else 1
        self.delimiter = _delimiter(sample) if said is None else said[1]
        header = next((cells for _, cells in self._lines()), None)
        if header is None:
            raise CatalogueError(f"{path} is empty: its first line must name the columns")
        names = [cell.strip() for cell in header]
        column, self._visibilities = stated_values(values, names)
        implied = () if column is None else (f"{column}=visibility",)
        self.columns: Columns = columns_of(names, (*implied, *stated))
        if column is not None:
            position = position_of(column, names)
            others = [pair for pair in stated if not pair.endswith("=visibility")]
            left_out = position in {position_of(pair.rpartition("=")[0], names) for pair in others}
            if left_out or self.columns.positions["visibility"] != position:
                raise CatalogueError(f"--map-value is for the visibility, and --map says that {column!r} is not that")

    def records(self, report: Callable[..., None]) -> Iterator[ShopRecord]:
        """The shops of all good rows; `report` gets the problems of each bad row."""
        ids: dict[str, int] = {}
        for line, cells in islice(self._lines(), 1, None):
            try:
                yield self._record(cells, line, ids)
            except RefusedRecordError as error:
                # Where ids are made from domains, a missing or wrong domain is one fault, without the id that it lacks.
                faults = [fault for fault in error.faults if fault[0] != "id" or "id" in self.columns.positions]
                report(
                    *(
                        Problem(self._path.name, line, field, self._advised(field, reason, cells))
                        for field, reason in faults or error.faults
                    )
                )

    def refuse_unclear_status(self, *, skip_invalid: bool = False) -> None:
        """Refuse a file from which shops that its owner has suspended might be published, by a CatalogueError.

        That is a column that nobody mapped and that looks like a status, or, unless such rows are left out, an unknown
        visibility.
        """
        visibility = self.columns.positions.get("visibility")
        unused = [one for one in self.columns.unused_positions() if one not in self.columns.settled]
        chosen = unused if visibility is None else [visibility]
        values = {position: Values(self.columns.header[position]) for position in chosen}
        for _, cells in islice(self._lines(), 1, None):
            for position, column in values.items():
                if position < len(cells) and (text := cells[position].strip()):
                    column.add(text)
        faults = []
        for position, column in values.items():
            if position == visibility:
                unknown = column.unknown(self._visibilities)
                if unknown and not skip_invalid:
                    faults.append(column.unknown_as_text(unknown))
            elif column.is_status:
                faults.append(column.status_as_text())
        if faults:
            raise CatalogueError("; ".join(faults))

    def _record(self, cells: Sequence[str], line: int, ids: dict[str, int]) -> ShopRecord:
        """The shop of a row, whose id is added to the lines by id."""
        more = len(cells) - len(self.columns.header)
        if more > 0 and any(cell.strip() for cell in cells[-more:]):
            reason = f"the row is longer than the header by {more}: quote cells that hold the delimiter"
            raise RefusedRecordError((None, reason))
        record = validated(ShopRecord, self._fields(cells), lenient=False)
        if (first := ids.setdefault(record.id, line)) != line:
            made = "" if "id" in self.columns.positions else ", made from the same domain"
            raise RefusedRecordError(("id", f"is already the id of line {first}{made}"))
        return record

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """The rows that are not blank, the header first, each with the number of its first line."""
        with self._opened() as file:
            for _ in range(self._lines_before_header):
                next(file)
            reader = csv.reader(file, delimiter=self.delimiter)
            before = self._lines_before_header
            for row in reader:
                # Empty lines, of which there may be millions, are passed over first.
                if row and any(map(str.strip, row)):
                    yield before + 1, row
                before = self._lines_before_header + reader.line_num

    @contextmanager
    def _opened(self) -> Iterator[TextIO]:
        path = self._path
        try:
            with path.open("rb") as file:
                encoding = "utf-16" if file.read(2) in _UTF16_MARKS else "utf-8-sig"
            with path.open(encoding=encoding, newline="") as text:
                yield text
        except csv.Error as error:
            raise CatalogueError(f"{path} is no CSV: {error}") from error
        except UnicodeDecodeError as error:
            raise CatalogueError(f"{path} is not {error.encoding.upper()}: save it as UTF-8") from error
        except OSError as error:
            raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error

    def _fields(self, cells: Sequence[str]) -> dict[str, Any]:
        """A row as a line of `shops`; a value that can't be converted stays, and the record's model rejects it."""
        stated = {
            field: cells[position].strip()
            for field, position in self.columns.positions.items()
            if position < len(cells) and cells[position].strip()
        }
        fields: dict[str, Any] = {field: text for field, text in stated.items() if field in _PLAIN}
        fields["categories"] = [
            {"slug": slug_of(name), "name": name} for name in _several(stated.get("categories", self._category or ""))
        ]
        fields["countries"] = [country_code(name) for name in _several(stated.get("countries", ""))]
        fields["aliases"] = _several(stated.get("aliases", ""), "|;")
        fields["checkout_hosts"] = _several(stated.get("checkout_hosts", ""))
        fields["popularity"] = self._number(stated.get("popularity"))
        if "visibility" not in self.columns.positions:
            fields["visibility"] = "public"
        else:
            said = stated.get("visibility", "").casefold()
            if known := self._visibilities.get(said) or (said if said in VISIBILITIES else None):
                fields["visibility"] = known
        if "id" not in stated and "domain" in stated:
            fields["id"] = id_of(stated["domain"])
        return fields

    def _number(self, text: str | None) -> object:
        """The number of a cell; its text if it is none, which the record's model rejects."""
        if text is None:
            return None
        # A spreadsheet that writes decimals with a comma separates cells by another character.
        decimal = text.replace(",", ".") if self.delimiter != "," and text.count(",") == 1 else text
        try:
            return float(decimal)
        except ValueError:
            return text

    def _advised(self, field: str | None, reason: str, cells: Sequence[str]) -> str:
        """The reason of a bad row, with what a CSV may hold instead."""
        position = None if field is None else self.columns.positions.get(field)
        if position is not None and position < len(cells) and len(cells[position].splitlines()) > 1:
            return f"{reason}: the cell has a line break"
        if field == "countries":
            return f"{reason}, or English names"
        if field == "categories" and not self._category:
            column = "" if field in self.columns.positions else "--map COLUMN=categories names their column, "
            return f"{reason}; {column}--category gives one to rows without any"
        if field == "visibility" and position is not None and not "".join(cells[position : position + 1]).strip():
            return (
                f"{reason}; --map-value {shlex.quote(f'{self.columns.header[position]}:=under_review')} hides such rows"
            )
        return reason


def slug_of(name: str) -> str:
    """A category's slug from its name in any script; empty where the name has no ASCII transliteration."""
    return _NO_SLUG.sub("-", anyascii(name).lower()).strip("-")[:_MAX_SLUG].rstrip("-")


def id_of(domain: str) -> str:
    """A shop's id from its domain, the same for every form of the domain; empty where the text is no domain."""
    host = reduce_host(domain) or ""
    made = _NO_ID.sub("_", host)
    if len(made) <= _MAX_ID:
        return made
    digest = hashlib.blake2b(host.encode(), digest_size=6).hexdigest()
    return f"{made[: _MAX_ID - len(digest) - 1]}_{digest}"


@lru_cache(maxsize=4_096)
def country_code(text: str) -> str:
    """The code of a country from its code or its English name; any other text in capitals."""
    code = text.upper()
    if code in COUNTRY_CODES:
        return code
    if code in _WORLD:
        return WORLDWIDE
    return _country_names().get(code, code)


@lru_cache(maxsize=1)
def _country_names() -> Mapping[str, str]:
    names = {"UK": "GB", "GREAT BRITAIN": "GB", "USA": "US", "KOSOVO": "XK"}
    for country in pycountry.countries:
        for attribute in ("alpha_3", "name", "common_name", "official_name"):
            if name := getattr(country, attribute, None):
                names.setdefault(name.upper(), country.alpha_2)
    return names


def _several(cell: str, delimiters: str = "|;,") -> list[str]:
    """The entries of a cell, split at the first of these delimiters that occurs in it."""
    delimiter = next((one for one in delimiters if one in cell), delimiters[0])
    return [part.strip() for part in cell.split(delimiter) if part.strip()]


def _delimiter(sample: str) -> str:
    """The delimiter that the csv module finds, if the header has it; else the most frequent one of the header."""
    header = sample.partition("\n")[0]
    try:
        found = csv.Sniffer().sniff(sample, _DELIMITERS).delimiter
    except csv.Error:
        found = ""
    return found if found and found in header else max(_DELIMITERS, key=header.count)
