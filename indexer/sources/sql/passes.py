"""Passes over the changed rows of one table, which miss no row, however late its transaction commits (G3).

A pass reads all versions from a lower bound to the newest version at its beginning, so that it ends however fast others
write. The next lower bound is the overlap below that newest version, for rows that were committed late.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Connection

from indexer.sources.sql.tables import SqlTable
from indexer.sources.sql.versions import VersionColumn

REMEMBERED: Final = 100_000

AnyRow = Sequence[Any]


class TablePosition(BaseModel):
    """The position in one table; all numbers are versions as VersionColumn counts them.

    Attributes:
        by: table and column; a position of other ones is not valid.
        low: the first version of this pass or, between two passes, of the next; None for the beginning.
        top: the last version of this pass; None between two passes.
        at: the last version that this pass has read; None before the first.
        next: the first version of the pass after this one.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    by: str
    low: int | None = None
    top: int | None = None
    at: int | None = None
    next: int | None = None


@dataclass(frozen=True, slots=True)
class _Delivered:
    number: int
    stated: tuple[Any, ...]


class TablePasses:
    """Reads the changes of one table, pass by pass.

    Each pass reads the rows of the overlap again. Up to REMEMBERED delivered rows are remembered by key, and not
    delivered again by this object.

    Attributes:
        position: the current position.
    """

    def __init__(self, table: SqlTable, version: VersionColumn, position: TablePosition | None = None) -> None:
        """Begin at `position`; at the beginning if it is None, or of another table or column."""
        self.table = table
        self._version = version
        by = _table_and_column(table, version)
        self.position = position if position is not None and position.by == by else TablePosition(by=by)
        self._after: tuple[Any, ...] | None = None
        self._delivered: dict[tuple[Any, ...], _Delivered] = {}

    @property
    def is_within(self) -> bool:
        """Whether a pass has begun and not ended."""
        return self.position.top is not None

    def begin(self, connection: Connection) -> None:
        """Begin a pass, unless the table is empty."""
        newest = connection.scalar(self.table.newest(self._version))
        if newest is not None:
            top = self._version.number(newest)
            self.position = TablePosition(
                by=self.position.by, low=self.position.low, top=top, next=self._version.floor(top)
            )
            self._after = None

    def rows(self, connection: Connection, limit: int) -> list[AnyRow]:
        """The next rows that were not delivered yet, at limit `limit`; fewer only at the end of the pass."""
        fresh: list[AnyRow] = []
        while (top := self.position.top) is not None and len(fresh) < limit:
            page = connection.execute(self.table.page(self._version, self._low, top, self._after, limit)).all()
            consumed = self._add_fresh(page, fresh, limit)
            if consumed == len(page) < limit:
                self._end()
            else:
                last = page[consumed - 1]
                self._after = (last[-1], *self._key(last))
                self.position = self.position.model_copy(update={"at": self._version.number(last[-1])})
        return fresh

    def _add_fresh(self, page: Sequence[AnyRow], fresh: list[AnyRow], limit: int) -> int:
        """Add the rows that were not delivered yet; returns the number of consumed rows."""
        for consumed, row in enumerate(page):
            if len(fresh) == limit:
                return consumed
            if self._is_fresh(row):
                fresh.append(row)
        return len(page)

    @property
    def _low(self) -> int | None:
        # A pass that another process began continues with the last version that was read.
        return self.position.low if self.position.at is None else self.position.at

    def _is_fresh(self, row: AnyRow) -> bool:
        key = self._key(row)
        delivered = _Delivered(self._version.number(row[-1]), tuple(row[index] for index in self.table.version_indexes))
        if self._delivered.pop(key, None) == delivered:
            self._delivered[key] = delivered
            return False
        self._delivered[key] = delivered
        if len(self._delivered) > REMEMBERED:
            del self._delivered[next(iter(self._delivered))]
        return True

    def _key(self, row: AnyRow) -> tuple[Any, ...]:
        return tuple(row[index] for index in self.table.key_indexes)

    def _end(self) -> None:
        low = self.position.next
        self.position = TablePosition(by=self.position.by, low=low)
        self._after = None
        if low is not None:
            self._delivered = {key: row for key, row in self._delivered.items() if row.number >= low}


def _table_and_column(table: SqlTable, version: VersionColumn) -> str:
    return f"{table.name}.{version.name}"


def newest_position(connection: Connection, table: SqlTable, version: VersionColumn) -> TablePosition:
    """The position from which no change after the connection's snapshot is missed."""
    newest = connection.scalar(table.newest(version))
    low = None if newest is None else version.floor(version.number(newest))
    return TablePosition(by=_table_and_column(table, version), low=low)
