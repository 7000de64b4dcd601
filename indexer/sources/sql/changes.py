"""The changes of a SQL catalogue, by the version columns of its tables (G3).

A row may be delivered again, after a restart or from the overlap: versions decide. Removed rows are not detected; an
operator marks them instead (`deleted`, or visibility `removed`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Connection

from indexer.sources.protocol import Change, ChangeBatch, RefusedChange, order_of
from indexer.sources.sql.database import driver_errors, open_engine, reading
from indexer.sources.sql.passes import TablePasses, TablePosition, newest_position
from indexer.sources.sql.rows import RowRefusedError
from indexer.sources.sql.tables import SqlTable

_UNREADABLE: Final = "the changes of the catalogue's database cannot be read"


class _Position(BaseModel):
    """The JSON of a position; `number` distinguishes two batches that end at the same version."""

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
    ended: Final = False

    def __init__(self, address: str, tables: Iterable[SqlTable]) -> None:
        self._tables = tuple(table for table in tables if table.version is not None)
        self._engine = open_engine(address, pooled=True)
        self._passes: tuple[TablePasses, ...] = ()
        self._number = 0
        self._current: str | None = None
        self._is_lost = True
        self._delivered = 0

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        """The next changes. They count as applied only when their position is passed to the next call.

        Raises:
            CatalogueError: the database can't be read now; no change was skipped.
        """
        if self._is_lost or position != self._current:
            self._go_to(position)
        # If reading fails, rows that were read for this batch are lost and have to be read again.
        self._is_lost = True
        with reading(self._engine) as connection, driver_errors(_UNREADABLE):
            found = self._next_rows(connection, limit)
        changes, refused = self._changes_of(found)
        if changes or refused:
            self._number += 1
            self._current = self._position()
        self._is_lost = False
        more = any(passes.is_within for passes in self._passes)
        return ChangeBatch(tuple(changes), tuple(refused), self._current, more)

    def describe_position(self, position: str | None) -> str | None:
        """The number of batches before it, as the versions of a position are values of rows."""
        return None if position is None else f"batch {_parsed(position).number}"

    def backlog(self, position: str | None) -> int | None:  # noqa: ARG002 - never counted
        """None: counting the rows would read all of them."""
        return None

    def close(self) -> None:
        """Close the connection."""
        self._engine.dispose()
        self._is_lost = True

    def _next_rows(self, connection: Connection, limit: int) -> list[tuple[SqlTable, Sequence[Any]]]:
        if not any(passes.is_within for passes in self._passes):
            for passes in self._passes:
                passes.begin(connection)
        found: list[tuple[SqlTable, Sequence[Any]]] = []
        for passes in self._passes:
            if (room := limit - len(found)) > 0:
                found += [(passes.table, row) for row in passes.rows(connection, room)]
        return found

    def _changes_of(self, found: Iterable[tuple[SqlTable, Sequence[Any]]]) -> tuple[list[Change], list[RefusedChange]]:
        changes: list[Change] = []
        refused: list[RefusedChange] = []
        for table, row in found:
            self._delivered += 1
            location = f"{table.name}, changed row {self._delivered} of this run"
            try:
                changes.append(_change(table, row, location))
            except RowRefusedError as error:
                messages = tuple(f"{field} {reason}" if field else reason for field, reason in error.reasons)
                refused.append(RefusedChange(location, messages, table.form.raw(row)))
        return changes, refused

    def _go_to(self, position: str | None) -> None:
        stated = _parsed(position)
        self._number = stated.number
        self._current = position
        self._passes = tuple(
            TablePasses(table, table.version, stated.tables.get(table.kind))
            for table in self._tables
            if table.version is not None
        )

    def _position(self) -> str:
        tables = {passes.table.kind: passes.position for passes in self._passes}
        return _Position(number=self._number, tables=tables).model_dump_json(exclude_none=True)


def snapshot_position(connection: Connection, tables: Iterable[SqlTable]) -> str:
    """The position from which changes have to be read so that none is missed after the connection's snapshot."""
    positions = {
        table.kind: newest_position(connection, table, table.version) for table in tables if table.version is not None
    }
    return _Position(tables=positions).model_dump_json(exclude_none=True)


def _change(table: SqlTable, row: Sequence[Any], location: str) -> Change:
    form = table.form
    if form.is_deleted(row):
        deleted = form.key_record(row)
        return Change(table.kind, deleted.key, order_of(deleted), None, location)
    record = form.record(row)
    return Change(table.kind, record.key, order_of(record), record, location)


def _parsed(position: str | None) -> _Position:
    if position is None:
        return _Position()
    try:
        return _Position.model_validate_json(position)
    except ValidationError:
        # A position of another source or format: all rows are read again.
        return _Position()
