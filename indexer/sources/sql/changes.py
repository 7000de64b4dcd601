"""The changes of a SQL catalogue, by the version columns of its tables (G3).

A row may be delivered again, after a restart or from the overlap: versions decide. Rows that vanish are not seen; an
operator marks them (`deleted`, or visibility `removed`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Connection

from indexer.sources.protocol import Change, ChangeBatch, RefusedChange, order_of
from indexer.sources.sql.database import open_engine, reading, told
from indexer.sources.sql.passes import TablePasses, TablePosition, newest_position
from indexer.sources.sql.rows import RowRefusedError, key_of
from indexer.sources.sql.tables import SqlTable

_UNREADABLE: Final = "the changes of the catalogue's database cannot be read"


class _Position(BaseModel):
    """What a position's JSON holds; `number` tells two batches apart that end at the same place."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    number: int = 0
    tables: Mapping[str, TablePosition] = {}


class SqlChanges:
    """The changes of all tables that have a version column, read in rounds of one pass a table.

    Args:
        address: the database's URL.
        tables: the catalogue's tables; those without a version column are not followed.
    """

    kind: Final = "sql"

    def __init__(self, address: str, tables: Iterable[SqlTable]) -> None:
        self._tables = tuple(table for table in tables if table.version is not None)
        self._engine = open_engine(address, keep=True)
        self._passes: tuple[TablePasses, ...] = ()
        self._number = 0
        self._stands: str | None = None
        self._is_lost = True
        self._rows = 0

    @property
    def name(self) -> str:
        """What reports call it: the followed tables."""
        return f"SQL ({', '.join(table.name for table in self._tables)})"

    @property
    def ended(self) -> bool:
        """Never: a table may always change."""
        return False

    def read(self, position: str | None, most: int) -> ChangeBatch:
        """The next changes; none of them is taken for applied before its position comes back.

        Raises:
            CatalogueError: the database can't be read now; nothing was passed over.
        """
        if self._is_lost or position != self._stands:
            self._go_to(position)
        # Until the batch is in the caller's hands, what was read of it may be lost.
        self._is_lost = True
        with reading(self._engine) as connection, told(_UNREADABLE):
            found = self._next_rows(connection, most)
        changes, refused = self._judged(found)
        if changes or refused:
            self._number += 1
            self._stands = self._position()
        self._is_lost = False
        more = any(passes.is_within for passes in self._passes)
        return ChangeBatch(tuple(changes), tuple(refused), self._stands, more)

    def whereabouts(self, position: str | None) -> str | None:
        """The batches before it: the versions that a position holds are values of rows."""
        return None if position is None else f"batch {_parsed(position).number}"

    def waiting(self, position: str | None) -> int | None:  # noqa: ARG002 - known for no position
        """None: to count the rows would be to go through all of them."""
        return None

    def close(self) -> None:
        """End the connection."""
        self._engine.dispose()
        self._is_lost = True

    def _next_rows(self, connection: Connection, most: int) -> list[tuple[SqlTable, Sequence[Any]]]:
        if not any(passes.is_within for passes in self._passes):
            for passes in self._passes:
                passes.begin(connection)
        found: list[tuple[SqlTable, Sequence[Any]]] = []
        for passes in self._passes:
            if (room := most - len(found)) > 0:
                found += [(passes.table, row) for row in passes.rows(connection, room)]
        return found

    def _judged(self, found: Iterable[tuple[SqlTable, Sequence[Any]]]) -> tuple[list[Change], list[RefusedChange]]:
        changes: list[Change] = []
        refused: list[RefusedChange] = []
        for table, row in found:
            self._rows += 1
            place = f"{table.name}, changed row {self._rows} of this run"
            try:
                changes.append(_change(table, row, place))
            except RowRefusedError as error:
                told_reasons = tuple(f"{field} {reason}" if field else reason for field, reason in error.reasons)
                refused.append(RefusedChange(place, told_reasons, table.form.raw(row)))
        return changes, refused

    def _go_to(self, position: str | None) -> None:
        stated = _parsed(position)
        self._number = stated.number
        self._stands = position
        self._passes = tuple(
            TablePasses(table, table.version, stated.tables.get(table.kind))
            for table in self._tables
            if table.version is not None
        )

    def _position(self) -> str:
        tables = {passes.table.kind: passes.position for passes in self._passes}
        return _Position(number=self._number, tables=tables).model_dump_json(exclude_none=True)


def snapshot_position(connection: Connection, tables: Iterable[SqlTable]) -> str:
    """The position from which no change is missed that the connection's snapshot does not show."""
    stands = {
        table.kind: newest_position(connection, table, table.version) for table in tables if table.version is not None
    }
    return _Position(tables=stands).model_dump_json(exclude_none=True)


def _change(table: SqlTable, row: Sequence[Any], place: str) -> Change:
    form = table.form
    if form.is_deleted(row):
        mark = form.mark(row)
        return Change(table.kind, key_of(table.kind, mark), order_of(mark), None, place)
    record = form.record(row)
    return Change(table.kind, key_of(table.kind, record), order_of(record), record, place)


def _parsed(position: str | None) -> _Position:
    if position is None:
        return _Position()
    try:
        return _Position.model_validate_json(position)
    except ValidationError:
        # Of another source, or of an earlier form: everything is read again.
        return _Position()
