"""The SQL catalogue: tables of an operator's database, read as of one moment by a server-side cursor.

A bad row is told by table, row and field, never by its value (V1). Memory is bounded by a page of rows.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from sqlalchemy import Connection

from indexer.progress import Advance
from indexer.records.problems import Problem, ProblemLog
from indexer.records.shop import Record
from indexer.sources.ndjson import Read
from indexer.sources.sql.changes import SqlChanges, snapshot_position
from indexer.sources.sql.database import begin_reading, end_reading, open_engine, reading, told
from indexer.sources.sql.mapping import TableMapping
from indexer.sources.sql.rows import RowRefusedError
from indexer.sources.sql.tables import read_tables

ROWS_AT_ONCE: Final = 500
_Model = TypeVar("_Model", bound=Record)


class SqlCatalogue:
    """A catalogue in a database.

    Args:
        address: a URL as SQLAlchemy has them, such as `postgresql://reader@host/database` or `sqlite:///shops.db`.
        mapping: what the mapping file says; None for tables and columns named like types and fields.
        lenient: pass over unknown columns, and over unknown fields within JSON.

    Raises:
        CatalogueError: the database can't be reached, or its tables don't fit.
    """

    def __init__(
        self, address: str, mapping: Mapping[str, TableMapping] | None = None, *, lenient: bool = False
    ) -> None:
        self._address = address
        self._engine = open_engine(address)
        self._snapshot: Connection | None = None
        with reading(self._engine) as connection, told("the tables of the catalogue's database cannot be read"):
            self._tables = read_tables(connection, mapping, lenient=lenient)

    def kinds(self) -> tuple[str, ...]:
        """The types that the catalogue holds, in the order in which they are read."""
        return tuple(self._tables)

    def name(self, kind: str) -> str:
        """The name of a type's table, for reports."""
        return self._tables[kind].name

    def size(self, kind: str) -> int:
        """The rows of a type's table."""
        with self._moment() as connection, told(self._unreadable(kind)):
            return int(connection.scalar(self._tables[kind].count()) or 0)

    def unit(self) -> str:
        """Rows."""
        return "rows"

    def fingerprint(self) -> None:
        """Nobody knows what a database holds without reading it."""

    def open_snapshot(self) -> str | None:
        """Begin the transaction in which everything is read.

        Returns:
            The position from which changes are read so that none is missed; None when no table can be followed.
        """
        self.close_snapshot()
        connection = begin_reading(self._engine)
        try:
            with told(self._unreadable("shops")):
                # The first statement fixes the moment: it has to be one that asks a table.
                connection.execute(self._tables["shops"].rows().limit(1)).close()
                position = snapshot_position(connection, self._tables.values())
        except BaseException:
            end_reading(connection)
            raise
        self._snapshot = connection
        return position if self._is_followed() else None

    def records(
        self, kind: str, model: type[_Model], problems: ProblemLog, advance: Advance
    ) -> Generator[Read[_Model], None, None]:
        """Read the records of a type, by key; rows that say that their record is gone are passed over.

        Args:
            kind: one of `kinds()`.
            model: its model, RECORDS[kind].
            problems: takes what is wrong; a problem's line is the number of the row.
            advance: is told the rows gone through since it was last told.

        Raises:
            CatalogueError: the database can't be read on.
        """
        name, form = self.name(kind), self._tables[kind].form
        version_kind: str | None = None
        for number, row in enumerate(self._rows(kind), 1):
            advance(1)
            try:
                if form.is_deleted(row):
                    continue
                record = form.record(row)
            except RowRefusedError as error:
                problems.add(*(Problem(name, number, field, reason) for field, reason in error.reasons))
                continue
            stated = record.version_kind
            version_kind = version_kind or stated
            if stated not in (None, version_kind):
                reason = f"must not be mixed with {version_kind} in one table"
                problems.add(Problem(name, number, stated, reason))
            elif isinstance(record, model):
                yield Read(record, number)

    def close_snapshot(self) -> None:
        """End the transaction and its connection."""
        if self._snapshot is not None:
            end_reading(self._snapshot)
            self._snapshot = None

    def changes(self) -> SqlChanges | None:
        """The changes of the tables that have a version column; None when there is no such table."""
        return SqlChanges(self._address, self._tables.values()) if self._is_followed() else None

    def _is_followed(self) -> bool:
        return any(table.version is not None for table in self._tables.values())

    def _rows(self, kind: str) -> Iterator[tuple[object, ...]]:
        statement = self._tables[kind].rows().execution_options(yield_per=ROWS_AT_ONCE)
        with self._moment() as connection, told(self._unreadable(kind)), connection.execute(statement) as rows:
            yield from rows

    @contextmanager
    def _moment(self) -> Iterator[Connection]:
        """The snapshot's connection; without a snapshot one for this reading alone."""
        if self._snapshot is not None:
            yield self._snapshot
        else:
            with reading(self._engine) as connection:
                yield connection

    def _unreadable(self, kind: str) -> str:
        return f"the table {self.name(kind)} cannot be read"
