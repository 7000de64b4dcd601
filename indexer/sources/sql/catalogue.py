"""The SQL catalogue: tables of an operator's database, read in one transaction, and the changes that follow (G3).

An invalid row is reported by table, row and field, never by value (V1). Memory is bounded by a page of rows.

Changes are followed by the version columns of the tables, in passes that miss no row, however late its transaction
commits. A pass reads all versions from a lower bound to the newest version at its beginning, so that it ends however
fast others write. The next lower bound is the overlap below that newest version, for rows that were committed late. A
row may be delivered again, after a restart or from the overlap: versions decide. Removed rows are not detected; an
operator marks them instead (`deleted`, or visibility `removed`).
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Connection

from indexer.progress import Advance
from indexer.records.problems import Problem, ProblemLog
from indexer.sources.protocol import (
    AnyRecord,
    Change,
    ChangeBatch,
    NumberedRecord,
    RefusedChange,
    without_mixed_versions,
)
from indexer.sources.sql.database import begin_transaction, driver_errors, end_transaction, open_engine, transaction
from indexer.sources.sql.rows import RowRefusedError
from indexer.sources.sql.tables import SqlTable, TableMapping, VersionColumn, read_tables

ROWS_PER_PAGE: Final = 500
REMEMBERED: Final = 100_000
_UNREADABLE: Final = "the changes of the catalogue's database cannot be read"

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
    """Reads the changes of one table, pass by pass, from a position.

    Each pass reads the rows of the overlap again. Up to REMEMBERED delivered rows are remembered by key, and not
    delivered again by this object.
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
    """The position from which no change after the connection's transaction began is missed."""
    newest = connection.scalar(table.newest(version))
    low = None if newest is None else version.floor(version.number(newest))
    return TablePosition(by=_table_and_column(table, version), low=low)


class _Position(BaseModel):
    """The JSON of a position; `number` distinguishes two batches that end at the same version."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    number: int = 0
    tables: Mapping[str, TablePosition] = {}


class SqlChanges:
    """The changes of all tables that have a version column, read in rounds of one pass a table."""

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
        """The next changes. They count as applied only when their position is passed to the next call."""
        if self._is_lost or position != self._current:
            self._go_to(position)
        # If reading fails, rows that were read for this batch are lost and have to be read again.
        self._is_lost = True
        with transaction(self._engine) as connection, driver_errors(_UNREADABLE):
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


def position_of_transaction(connection: Connection, tables: Iterable[SqlTable]) -> str:
    """The position from which changes have to be read so that none is missed after the transaction's begin."""
    positions = {
        table.kind: newest_position(connection, table, table.version) for table in tables if table.version is not None
    }
    return _Position(tables=positions).model_dump_json(exclude_none=True)


def _change(table: SqlTable, row: Sequence[Any], location: str) -> Change:
    form = table.form
    if form.is_deleted(row):
        deleted = form.key_record(row)
        return Change(table.kind, deleted.key, deleted.order, None, location)
    record = form.record(row)
    return Change(table.kind, record.key, record.order, record, location)


def _parsed(position: str | None) -> _Position:
    if position is None:
        return _Position()
    try:
        return _Position.model_validate_json(position)
    except ValidationError:
        # A position of another source or format: all rows are read again.
        return _Position()


class SqlCatalogue:
    """A catalogue in a database; without a mapping, tables and columns are named like types and fields.

    The address is a SQLAlchemy URL. A lenient catalogue ignores unknown columns, and unknown fields within JSON. Raises
    CatalogueError if the database can't be reached, or its tables don't fit.
    """

    def __init__(
        self, address: str, mapping: Mapping[str, TableMapping] | None = None, *, lenient: bool = False
    ) -> None:
        self._address = address
        self._engine = open_engine(address)
        self._transaction: Connection | None = None
        with (
            transaction(self._engine) as connection,
            driver_errors("the tables of the catalogue's database cannot be read"),
        ):
            self._tables = read_tables(connection, mapping, lenient=lenient)

    def kinds(self) -> tuple[str, ...]:
        """The types of the catalogue, in the order of reading."""
        return tuple(self._tables)

    def name(self, kind: str) -> str:
        """The name of a type's table, for reports."""
        return self._tables[kind].name

    def size(self, kind: str) -> int:
        """The number of rows of a type's table."""
        with self._connection() as connection, driver_errors(self._unreadable(kind)):
            return int(connection.scalar(self._tables[kind].count()) or 0)

    def unit(self) -> str:
        """Rows."""
        return "rows"

    def fingerprint(self) -> None:
        """None: only reading a whole database shows what it holds."""

    def begin_reading(self) -> str | None:
        """Begin the transaction in which all records are read."""
        self.end_reading()
        connection = begin_transaction(self._engine)
        try:
            with driver_errors(self._unreadable("shops")):
                # The first statement that reads a table fixes what the transaction sees.
                connection.execute(self._tables["shops"].rows().limit(1)).close()
                position = position_of_transaction(connection, self._tables.values())
        except BaseException:
            end_transaction(connection)
            raise
        self._transaction = connection
        return position if self._is_followed() else None

    def records(
        self, kind: str, model: type[AnyRecord], problems: ProblemLog, advance: Advance
    ) -> Generator[NumberedRecord[AnyRecord], None, None]:
        """Read the records of a type by their keys, without rows that mark a deleted record; `advance` counts rows."""
        return without_mixed_versions(self._valid(kind, model, problems, advance), self.name(kind), "table", problems)

    def _valid(
        self, kind: str, model: type[AnyRecord], problems: ProblemLog, advance: Advance
    ) -> Generator[NumberedRecord[AnyRecord], None, None]:
        name, form = self.name(kind), self._tables[kind].form
        for number, row in enumerate(self._rows(kind), 1):
            advance(1)
            try:
                if form.is_deleted(row):
                    continue
                record = form.record(row)
            except RowRefusedError as error:
                problems.add(*(Problem(name, number, field, reason) for field, reason in error.reasons))
                continue
            if isinstance(record, model):
                yield NumberedRecord(record, number)

    def end_reading(self) -> None:
        """End the transaction and its connection."""
        if self._transaction is not None:
            end_transaction(self._transaction)
            self._transaction = None

    def changes(self) -> SqlChanges | None:
        """The changes of the tables that have a version column; None if there is no such table."""
        return SqlChanges(self._address, self._tables.values()) if self._is_followed() else None

    def _is_followed(self) -> bool:
        return any(table.version is not None for table in self._tables.values())

    def _rows(self, kind: str) -> Iterator[tuple[object, ...]]:
        statement = self._tables[kind].rows().execution_options(yield_per=ROWS_PER_PAGE)
        with (
            self._connection() as connection,
            driver_errors(self._unreadable(kind)),
            connection.execute(statement) as rows,
        ):
            yield from rows

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """The connection of the transaction; outside of one, a connection of its own."""
        if self._transaction is not None:
            yield self._transaction
        else:
            with transaction(self._engine) as connection:
                yield connection

    def _unreadable(self, kind: str) -> str:
        return f"the table {self.name(kind)} cannot be read"
