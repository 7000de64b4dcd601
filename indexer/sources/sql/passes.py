"""Passes over the changed rows of one table: none is passed over, however late its transaction commits (G3).

A pass reads all versions from a floor to the newest one of its beginning, so that it ends however fast others write.
The next floor lies below that newest one by the overlap, for rows that were written before it and committed after it.
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
    """Where reading stands in one table; all numbers are versions as VersionColumn counts them.

    Attributes:
        by: table and column; another one is another order.
        low: where the next pass begins, or this one began; None for the beginning.
        top: where this pass ends; None between two passes.
        at: the last version that this pass has read; None before its first.
        next: where the pass after this one begins.
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

    Rows of the overlap are read again in each pass; those that were delivered before are remembered, up to
    REMEMBERED keys, and are not delivered again by this object.
    """

    def __init__(self, table: SqlTable, version: VersionColumn, position: TablePosition | None = None) -> None:
        """Begins where `position` stands; at the beginning when it is None or of another table or column."""
        self.table = table
        self._version = version
        by = described(table, version)
        self._at = position if position is not None and position.by == by else TablePosition(by=by)
        self._after: tuple[Any, ...] | None = None
        self._delivered: dict[tuple[Any, ...], _Delivered] = {}

    @property
    def position(self) -> TablePosition:
        """Where it stands now."""
        return self._at

    @property
    def is_within(self) -> bool:
        """Whether a pass has begun and not ended."""
        return self._at.top is not None

    def begin(self, connection: Connection) -> None:
        """Begin a pass; over nothing where the table is empty."""
        newest = connection.scalar(self.table.newest(self._version))
        if newest is not None:
            top = self._version.number(newest)
            self._at = TablePosition(by=self._at.by, low=self._at.low, top=top, next=self._version.floor(top))
            self._after = None

    def rows(self, connection: Connection, most: int) -> list[AnyRow]:
        """The next rows that were not delivered yet, at most `most`; fewer only at the end of the pass."""
        fresh: list[AnyRow] = []
        while (top := self._at.top) is not None and len(fresh) < most:
            page = connection.execute(self.table.page(self._version, self._low, top, self._after, most)).all()
            gone_through = self._take(page, fresh, most)
            if gone_through == len(page) < most:
                self._end()
            else:
                last = page[gone_through - 1]
                self._after = (last[-1], *self._key(last))
                self._at = self._at.model_copy(update={"at": self._version.number(last[-1])})
        return fresh

    def _take(self, page: Sequence[AnyRow], fresh: list[AnyRow], most: int) -> int:
        """Adds the rows that were not delivered yet; returns how many rows it went through."""
        for place, row in enumerate(page):
            if len(fresh) == most:
                return place
            if self._is_fresh(row):
                fresh.append(row)
        return len(page)

    @property
    def _low(self) -> int | None:
        # A pass that another process began goes on with the version that it had come to.
        return self._at.low if self._at.at is None else self._at.at

    def _is_fresh(self, row: AnyRow) -> bool:
        key = self._key(row)
        delivered = _Delivered(self._version.number(row[-1]), tuple(row[place] for place in self.table.version_places))
        if self._delivered.pop(key, None) == delivered:
            self._delivered[key] = delivered
            return False
        self._delivered[key] = delivered
        if len(self._delivered) > REMEMBERED:
            del self._delivered[next(iter(self._delivered))]
        return True

    def _key(self, row: AnyRow) -> tuple[Any, ...]:
        return tuple(row[place] for place in self.table.key_places)

    def _end(self) -> None:
        low = self._at.next
        self._at = TablePosition(by=self._at.by, low=low)
        self._after = None
        if low is not None:
            self._delivered = {key: one for key, one in self._delivered.items() if one.number >= low}


def described(table: SqlTable, version: VersionColumn) -> str:
    """Table and column, as a position names them."""
    return f"{table.name}.{version.name}"


def newest_position(connection: Connection, table: SqlTable, version: VersionColumn) -> TablePosition:
    """The position from which no change is missed that the connection's snapshot does not show."""
    newest = connection.scalar(table.newest(version))
    low = None if newest is None else version.floor(version.number(newest))
    return TablePosition(by=described(table, version), low=low)
