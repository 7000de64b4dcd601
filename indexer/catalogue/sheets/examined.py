"""Reads a sheet once before its records: finds reasons to stop the import, and facts that only all rows show."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from indexer.catalogue.sheets.columns import DATES, FIELDS, Columns
from indexer.catalogue.sheets.dates import DateColumn
from indexer.catalogue.sheets.joined import Repeated
from indexer.catalogue.sheets.values import Column
from indexer.catalogue.sheets.workbooks.rows import NumberedCells
from indexer.records.entities import decoded
from indexer.records.problems import CatalogueError

# The fields that limit in which countries a record counts.
_PLACES: Final = ("countries", "country", "excluded")


@dataclass(frozen=True, slots=True)
class Examined:
    """The shops that the rows name, the order of the dates of each field that settles it, and what to say of that.

    `repeated` has the rows that may be of one record with others.
    """

    shops: Collection[str]
    orders: Mapping[str, str]
    notes: list[str]
    repeated: Repeated


def examine(
    rows: Iterable[NumberedCells],
    columns: Columns,
    dates: str | None,
    visibilities: Mapping[str, str],
    *,
    lenient: bool,
) -> Examined:
    """Read the rows of a sheet; `dates` is the order of dates that is stated, `visibilities` that of values.

    Raises CatalogueError if suspended records might be published, by a column that nobody mapped and that looks like a
    status or, unless `lenient`, by an unknown visibility; or if records might count where or when they should not.
    """
    positions, known = columns.positions, FIELDS[columns.kind]
    visibility, shop = positions.get("visibility"), positions.get("shop_id", -1)
    unused = [one for one in columns.unused_positions() if one not in columns.settled]
    chosen = unused if visibility is None else [visibility, *unused]
    examined = {position: Column(name=columns.header[position]) for position in chosen}
    dated = {
        name: (position, DateColumn(columns.header[position]))
        for name, position in positions.items()
        if known[name].read in DATES
    }
    shops = {columns.constants["shop_id"]} if "shop_id" in columns.constants else set[str]()
    repeated = Repeated(columns)
    for line, row in rows:
        repeated.add(row)
        for position, column in examined.items():
            if position < len(row) and (text := decoded(row[position]).strip()):
                column.add(text, line)
        for position, date_column in dated.values():
            if position < len(row):
                date_column.add(decoded(row[position]).strip())
        if 0 <= shop < len(row):
            shops.add(decoded(row[shop]).strip())
    if faults := _faults(examined, columns, visibilities, lenient=lenient):
        raise CatalogueError("; ".join(faults))
    orders = {name: order for name, (_, column) in dated.items() if (order := column.order(dates)) is not None}
    notes = [note for _, column in dated.values() if (note := column.as_text(dates)) is not None]
    return Examined(shops, orders, notes, repeated)


def _faults(
    examined: Mapping[int, Column], columns: Columns, visibilities: Mapping[str, str], *, lenient: bool
) -> list[str]:
    faults = []
    kind, visibility, known = columns.kind, columns.positions.get("visibility"), FIELDS[columns.kind]
    is_limited = any(name in known and known[name].limits for name in _PLACES)
    for position, column in examined.items():
        if position == visibility:
            unknown = column.unknown(visibilities)
            if unknown and not lenient:
                faults.append(column.unknown_as_text(unknown))
        elif column.is_status:
            read_from = None if visibility is None else columns.header[visibility]
            faults.append(column.status_as_text(kind, read_from))
        elif is_limited and (limit := column.limit(kind, tuple(known))) is not None:
            faults.append(limit)
    return faults
