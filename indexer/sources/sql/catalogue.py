"""The SQL catalogue: tables of an operator's database, read from one snapshot by a server-side cursor.

An invalid row is reported by table, row and field, never by value (V1). Memory is bounded by a page of rows.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection

from indexer.progress import Advance
from indexer.records.problems import Problem, ProblemLog
from indexer.sources.protocol import AnyRecord, NumberedRecord, without_mixed_versions
from indexer.sources.sql.changes import SqlChanges, snapshot_position
from indexer.sources.sql.database import begin_reading, driver_errors, end_reading, open_engine, reading
from indexer.sources.sql.mapping import TableMapping
from indexer.sources.sql.rows import RowRefusedError
from indexer.sources.sql.tables import read_tables

ROWS_PER_PAGE: Final = 500


class SqlCatalogue:
    """A catalogue in a database.

    Args:
        address: a SQLAlchemy URL, such as `postgresql://reader@host/database` or `sqlite:///shops.db`.
        mapping: the contents of the mapping file; None for tables and columns named like types and fields.
        lenient: ignore unknown columns, and unknown fields within JSON.

    Raises:
        CatalogueError: the database can't be reached, or its tables don't fit.
    """

    def __init__(
        self, address: str, mapping: Mapping[str, TableMapping] | None = None, *, lenient: bool = False
    ) -> None:
        self._address = address
        self._engine = open_engine(address)
        self._snapshot: Connection | None = None
        with (
            reading(self._engine) as connection,
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

    def open_snapshot(self) -> str | None:
        """Begin the transaction in which all records are read.

        Returns:
            The position from which changes have to be read so that none is missed; None if no table can be followed.
        """
        self.close_snapshot()
        connection = begin_reading(self._engine)
        try:
            with driver_errors(self._unreadable("shops")):
                # The first statement that reads a table fixes the snapshot.
                connection.execute(self._tables["shops"].rows().limit(1)).close()
                position = snapshot_position(connection, self._tables.values())
        except BaseException:
            end_reading(connection)
            raise
        self._snapshot = connection
        return position if self._is_followed() else None

    def records(
        self, kind: str, model: type[AnyRecord], problems: ProblemLog, advance: Advance
    ) -> Generator[NumberedRecord[AnyRecord], None, None]:
        """Read the records of a type in the order of their keys; rows that mark a deleted record are skipped.

        Args:
            kind: one of `kinds()`.
            model: its model, RECORDS[kind].
            problems: collects what is wrong; a problem's line is the number of the row.
            advance: called with the number of rows that were read since its last call.

        Raises:
            CatalogueError: the database can't be read any more.
        """
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

    def close_snapshot(self) -> None:
        """End the transaction and its connection."""
        if self._snapshot is not None:
            end_reading(self._snapshot)
            self._snapshot = None

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
        """The snapshot's connection; without a snapshot, a connection of its own."""
        if self._snapshot is not None:
            yield self._snapshot
        else:
            with reading(self._engine) as connection:
                yield connection

    def _unreadable(self, kind: str) -> str:
        return f"the table {self.name(kind)} cannot be read"
