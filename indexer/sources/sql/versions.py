"""The column by which the changes of a table are followed, as one ascending integer for each row (G3).

A position holds only such numbers and no keys, as it may be published where keys of hidden shops must not be (V1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, DateTime, Text, and_, column, func, types

from index_mappings.timestamps import microseconds
from indexer.records.problems import CatalogueError
from indexer.sources.protocol import UPDATED_AT, VERSION
from indexer.sources.sql.mapping import OVERLAP_SECONDS, OVERLAP_VERSIONS, TableMapping

_SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Times outside are ignored (databases know infinity): one of them would hide all later changes.
_EARLIEST: Final = datetime(1000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class VersionColumn:
    """The column that orders the changes of a table.

    Attributes:
        name: the column's name.
        kind: VERSION for an integer, UPDATED_AT for a time.
        expression: the expression to compare and sort by.
        usable: whether a row has a valid version; a row without one can't be followed.
        overlap: how far below the newest version rows are read again, in versions or microseconds.
        texts: whether times are compared as text.
        zoned: whether times have a time zone.
    """

    name: str
    kind: int
    expression: ColumnElement[Any]
    usable: ColumnElement[bool]
    overlap: int
    texts: bool = False
    zoned: bool = False

    def bound(self, number: int) -> object:
        """The value of a number for comparisons in the database."""
        if self.kind == VERSION:
            return number
        inside = min(max(number, microseconds(_EARLIEST)), microseconds(_LATEST))
        return _comparable(_EPOCH + timedelta(microseconds=inside), texts=self.texts, zoned=self.zoned)

    def number(self, value: object) -> int:
        """The number of a value that the database selected."""
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return microseconds(value if value.tzinfo else value.replace(tzinfo=UTC))
        if isinstance(value, (int, Decimal)):
            return int(value)
        raise CatalogueError(f"the column {self.name} holds versions that are neither numbers nor times")

    def floor(self, top: int) -> int:
        """The first version of the next pass, when `top` was the newest: the overlap below it.

        A time in the future counts as now, so that one wrong clock does not hide later changes.
        """
        newest = min(top, microseconds(datetime.now(UTC))) if self.kind == UPDATED_AT else top
        return newest - self.overlap


def version_column(
    stated: TableMapping, found: Mapping[str, types.TypeEngine[Any]], dialect: str
) -> VersionColumn | None:
    """The column that the mapping names; without one, `updated_at` if it is a time, else None.

    An integer is followed only if the mapping names it: it may count the changes of each record, not of the table.

    Raises:
        CatalogueError: the named column is neither an integer nor a time.
    """
    name = stated.version or stated.columns.get("updated_at", "updated_at")
    kind = found.get(name)
    if isinstance(kind, types.DateTime) or (dialect == "sqlite" and isinstance(kind, types.String)):
        overlap = (OVERLAP_SECONDS if stated.overlap is None else stated.overlap) * _SECOND
        return _of_time(name, kind, overlap, dialect)
    if stated.version is None:
        return None
    is_whole = isinstance(kind, types.Integer) or (isinstance(kind, types.Numeric) and not kind.scale)
    if not is_whole or isinstance(kind, types.Float):
        raise CatalogueError(
            f"the version column {name} of the catalogue's database is neither a whole number nor a time"
        )
    number: ColumnElement[Any] = column(name, BigInteger())
    # SQLite stores texts in columns of numbers, and sorts them after all numbers.
    usable = func.typeof(number) == "integer" if dialect == "sqlite" else number.is_not(None)
    return VersionColumn(name, VERSION, number, usable, OVERLAP_VERSIONS if stated.overlap is None else stated.overlap)


def _of_time(name: str, kind: types.TypeEngine[Any], overlap: int, dialect: str) -> VersionColumn:
    if dialect == "sqlite":
        # It stores times as texts of several formats, which sort when they are converted to one (UTC, milliseconds).
        text = func.strftime("%Y-%m-%dT%H:%M:%f", column(name), type_=Text())
        return VersionColumn(name, UPDATED_AT, text, _within(text, texts=True, zoned=False), overlap, texts=True)
    zoned = bool(getattr(kind, "timezone", False))
    time: ColumnElement[Any] = column(name, DateTime(timezone=zoned))
    return VersionColumn(name, UPDATED_AT, time, _within(time, texts=False, zoned=zoned), overlap, zoned=zoned)


def _within(expression: ColumnElement[Any], *, texts: bool, zoned: bool) -> ColumnElement[bool]:
    earliest, latest = (_comparable(time, texts=texts, zoned=zoned) for time in (_EARLIEST, _LATEST))
    return and_(expression >= earliest, expression <= latest)


def _comparable(time: datetime, *, texts: bool, zoned: bool) -> object:
    plain = time.replace(tzinfo=None)
    if texts:
        return plain.isoformat(timespec="milliseconds")
    return time if zoned else plain
