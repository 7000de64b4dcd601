"""The SQL catalogue: tables of an operator's database, read in one transaction, and the changes that follow (G3).

The database is opened for reading only. An invalid row is reported by table, row and field, never by value, and no
error repeats a driver's message, which may hold values (V1). Memory is bounded by a page of rows.

Changes are followed by the version columns of the tables, in passes that miss no row, however late its transaction
commits. A pass reads all versions from a lower bound to the newest one at its beginning, so that it ends however fast
others write. The next lower bound is the overlap below that, for rows that were committed late. A row may be delivered
again, after a restart or from the overlap: versions decide. Removed rows are not detected; an operator marks them.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from indexer.progress import Advance
from indexer.records.faults import RefusedRecordError
from indexer.records.hiding import hiding_of
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.records.shop import StrictModel
from indexer.sources.protocol import (
    Change,
    ChangeBatch,
    ChangeSource,
    NumberedRecord,
    RefusedChange,
    without_mixed_versions,
)
from indexer.sources.sql.tables import SqlTable, TableMapping, VersionColumn, read_tables

ROWS_PER_PAGE: Final = 500
REMEMBERED: Final = 100_000
_UNREADABLE: Final = "the changes of the catalogue's database cannot be read"

AnyRow = Sequence[Any]

CONNECT_BOUND_S: Final = 10
BUSY_BOUND_S: Final = 30

# By backend, what a connection is opened with unless the URL says otherwise.
_CONNECTING: Final[Mapping[str, Mapping[str, object]]] = {
    "postgresql": {"connect_timeout": CONNECT_BOUND_S},
    # A connection may be used by another thread than the one that opened it, but by one thread at a time.
    "sqlite": {"check_same_thread": False, "timeout": BUSY_BOUND_S},
}
# The isolation level at which a transaction sees the database as of its first statement; SQLite has no other.
_TRANSACTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
    "mysql": {"isolation_level": "REPEATABLE READ"},
    "mariadb": {"isolation_level": "REPEATABLE READ"},
    "mssql": {"isolation_level": "SNAPSHOT"},
    "oracle": {"isolation_level": "SERIALIZABLE"},
}
_CONNECT_REASONS: Final = (
    ("password authentication failed", "the user or the password is refused"),
    ("no password supplied", "it asks for a password"),
    ("no pg_hba.conf entry", "it accepts no connections of this user from this host"),
    ("Connection refused", "nothing listens on that port"),
    ("not known", "the host's name is not known"),
    ("resolve host", "the host's name is not known"),
    ("timeout", "it does not answer in time"),
    ("does not exist", "there is no such database, or no such user"),
    ("too many clients", "it has too many connections"),
    ("certificate", "its certificate is refused"),
    ("unable to open database file", "the file cannot be opened"),
)
_SQLSTATES: Final = {
    "25P03": "the server ends idle transactions: see idle_in_transaction_session_timeout",
    "40001": "the rows changed during the transaction",
    "42501": "the user may not read it",
    "42703": "a column is gone",
    "42P01": "a table is gone",
    "57014": "the server cancelled it: see statement_timeout",
    "57P01": "the server ended the connection",
}


def open_engine(address: str, *, pooled: bool = False) -> Engine:
    """Create an engine for reading, which connects when it is used first.

    A `pooled` one keeps its connection open between transactions, until `dispose()`. Raises CatalogueError if the URL
    is invalid, its driver is not installed, or a SQLite file does not exist.
    """
    try:
        url = make_url(address)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1} if pooled else {"poolclass": NullPool}
        backend = url.get_backend_name()
        connecting = {name: of for name, of in _CONNECTING.get(backend, {}).items() if name not in url.query}
        engine = create_engine(
            url, connect_args=connecting, hide_parameters=True, pool_pre_ping=pooled, **pool
        ).execution_options(**_TRANSACTIONS.get(backend, {}))
    except (NoSuchModuleError, ImportError):
        raise CatalogueError("no driver is installed for the scheme of the catalogue's database URL") from None
    except (ArgumentError, ValueError):
        raise CatalogueError("the catalogue's database URL is invalid: write scheme://user@host/database") from None
    if backend == "sqlite":
        _check_file(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """A connection during a `with` block, in a transaction that sees the database as of its first statement."""
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        text = str(getattr(error, "orig", ""))
        reason = next((reason for fragment, reason in _CONNECT_REASONS if fragment in text), type(error).__name__)
        # Not chained: a traceback would print the driver's message.
        raise CatalogueError(f"the catalogue's database cannot be reached: {reason}") from None
    try:
        with driver_errors("the catalogue's database cannot be read"):
            connection.begin()
            if engine.dialect.name == "postgresql":
                # Times are read as text (psycopg knows no infinity), so their format must not depend on the server.
                connection.exec_driver_sql("SET LOCAL timezone = 'UTC'")
                connection.exec_driver_sql("SET LOCAL datestyle = 'ISO, YMD'")
        yield connection
    finally:
        try:
            connection.rollback()
        except SQLAlchemyError:
            # Otherwise the pool would try the same, and log the driver's message.
            connection.invalidate()
        connection.close()


@contextmanager
def driver_errors(message: str) -> Iterator[None]:
    """Raise errors of the database as a CatalogueError that begins with `message`."""
    try:
        yield
    except SQLAlchemyError as error:
        raise CatalogueError(f"{message}: {_reason(error)}") from None


def _reason(error: SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else None
    if cause is None:
        return type(error).__name__
    if (state := getattr(cause, "sqlstate", None)) is not None:
        return f"{_SQLSTATES.get(state, type(cause).__name__)} (SQLSTATE {state})"
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return "the connection was lost"
    return str(getattr(cause, "sqlite_errorname", type(cause).__name__))


def _check_file(url: URL) -> None:
    # Opening a missing file would create an empty one.
    if not url.database or url.database == ":memory:":
        raise CatalogueError("a SQLite catalogue is a file: write sqlite:///path/to/file")
    if not url.database.startswith("file:") and not Path(url.database).is_file():
        raise CatalogueError(f"there is no SQLite file at {url.database}")


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's connection
    # Python's driver begins transactions only before writes, and would fail a whole page because of one invalid text.
    connection.isolation_level = None
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA query_only = ON")


class TablePosition(StrictModel):
    """The position in one table; all numbers are versions as VersionColumn counts them.

    `by` names table and column; a position of other ones is not valid. `low` is the first version of this pass or,
    between two passes, of the next; None for the beginning. Within a pass, `top` is its last version, `at` the last one
    that it has read, and `next` the first one of the pass after it.
    """

    by: str
    low: int | None = None
    top: int | None = None
    at: int | None = None
    next: int | None = None


class TablePasses:
    """Reads the changes of one table, pass by pass, from a position.

    Of the rows of an overlap, up to REMEMBERED are remembered by key, and not delivered again by this object.
    """

    def __init__(self, table: SqlTable, version: VersionColumn, position: TablePosition | None = None) -> None:
        """Begin at `position`; at the beginning if it is None, or of another table or column."""
        self.table = table
        self._version = version
        known = position is not None and position.by == version.by
        self.position = position if position is not None and known else TablePosition(by=version.by)
        self._after: tuple[Any, ...] | None = None
        # By key: the number of the version, and the record's version.
        self._delivered: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def begin(self, connection: Connection) -> None:
        """Begin a pass, unless the table is empty."""
        newest = connection.scalar(self.table.newest(self._version))
        if newest is not None:
            top = self._version.number(newest)
            self.position = self.position.model_copy(update={"top": top, "next": self._version.floor(top)})
            self._after = None

    def rows(self, connection: Connection, limit: int) -> list[AnyRow]:
        """The next rows that were not delivered yet, at limit `limit`; fewer only at the end of the pass."""
        fresh: list[AnyRow] = []
        while (top := self.position.top) is not None and len(fresh) < limit:
            # A pass that another process began continues with the last version that was read.
            low = self.position.low if self.position.at is None else self.position.at
            # Whole pages, however few rows are missing: most rows of an overlap were delivered.
            page = connection.execute(self.table.page(self._version, low, top, self._after, limit)).all()
            consumed = 0
            for row in page:
                if len(fresh) == limit:
                    break
                consumed += 1
                if self._is_fresh(row):
                    fresh.append(row)
            if consumed == len(page) < limit:
                self._end()
            else:
                last = page[consumed - 1]
                self._after = (last[-1], *self._key(last))
                self.position = self.position.model_copy(update={"at": self._version.number(last[-1])})
        return fresh

    def _is_fresh(self, row: AnyRow) -> bool:
        key = self._key(row)
        delivered = (self._version.number(row[-1]), *(row[index] for index in self.table.version_indexes))
        known = self._delivered.pop(key, None)
        self._delivered[key] = delivered
        if len(self._delivered) > REMEMBERED:
            del self._delivered[next(iter(self._delivered))]
        return known != delivered

    def _key(self, row: AnyRow) -> tuple[Any, ...]:
        """The row's key as `SqlTable.keys` compares it."""
        return tuple("" if row[index] is None else row[index] for index in self.table.key_indexes)

    def _end(self) -> None:
        low = self.position.next
        self.position = TablePosition(by=self.position.by, low=low)
        self._after = None
        if low is not None:
            self._delivered = {key: row for key, row in self._delivered.items() if row[0] >= low}


class _Position(StrictModel):
    """The JSON of a position; `number` distinguishes two batches that end at the same version."""

    number: int = 0
    tables: Mapping[str, TablePosition] = {}


class SqlChanges(ChangeSource):
    """The changes of all tables that have a version column, read in rounds of one pass a table."""

    kind: Final = "sql"

    def __init__(self, address: str, tables: Iterable[SqlTable]) -> None:
        self._followed = tuple((table, table.version) for table in tables if table.version is not None)
        self._engine = open_engine(address, pooled=True)
        self._passes: tuple[TablePasses, ...] = ()
        self._number = 0
        self._current: str | None = None
        self._is_lost = True
        self._delivered = 0

    def read(self, position: str | None, limit: int) -> ChangeBatch:
        """The next changes. They count as applied only when their position is passed to the next call."""
        if self._is_lost or position != self._current:
            stated = _parsed(position)
            self._number, self._current = stated.number, position
            self._passes = tuple(
                TablePasses(table, version, stated.tables.get(table.kind)) for table, version in self._followed
            )
        # If reading fails, rows that were read for this batch are lost and have to be read again.
        self._is_lost = True
        with transaction(self._engine) as connection, driver_errors(_UNREADABLE):
            found = self._next_rows(connection, limit)
        changes: list[Change] = []
        refused: list[RefusedChange] = []
        for table, row in found:
            self._delivered += 1
            location = f"{table.name}, changed row {self._delivered} of this run"
            try:
                changes.append(table.change(row, location))
            except RefusedRecordError as error:
                hiding = None if table.kind != "shops" else hiding_of(0, table.readable(row))
                refused.append(RefusedChange.of(location, error, table.raw(row), hiding))
        if found:
            self._number += 1
            tables = {passes.table.kind: passes.position for passes in self._passes}
            self._current = _Position(number=self._number, tables=tables).model_dump_json(exclude_none=True)
        self._is_lost = False
        more = any(passes.position.top is not None for passes in self._passes)
        return ChangeBatch(tuple(changes), tuple(refused), self._current, more)

    def describe_position(self, position: str | None) -> str | None:
        """The number of batches before it, as the versions of a position are values of rows."""
        return None if position is None else f"batch {_parsed(position).number}"

    def close(self) -> None:
        """Close the connection."""
        self._engine.dispose()
        self._is_lost = True

    def _next_rows(self, connection: Connection, limit: int) -> list[tuple[SqlTable, AnyRow]]:
        if not any(passes.position.top is not None for passes in self._passes):
            for passes in self._passes:
                passes.begin(connection)
        found: list[tuple[SqlTable, AnyRow]] = []
        for passes in self._passes:
            if (room := limit - len(found)) > 0:
                found += [(passes.table, row) for row in passes.rows(connection, room)]
        return found


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

    unit: Final = "rows"

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
        return tuple(self._tables)

    def name(self, kind: str) -> str:
        return self._tables[kind].name

    def size(self, kind: str) -> int:
        with self._connection(kind) as connection:
            return int(connection.scalar(self._tables[kind].count()) or 0)

    def fingerprint(self) -> None:
        """None: only reading a whole database shows its size."""

    def written(self) -> None:
        """None: it is read as of the beginning of its transaction."""

    @contextmanager
    def reading(self) -> Iterator[str | None]:
        """As of `Source`: one transaction, in which all records are read."""
        with transaction(self._engine) as connection:
            with driver_errors(f"the table {self.name('shops')} cannot be read"):
                # The first statement that reads a table fixes what the transaction sees.
                connection.execute(self._tables["shops"].rows().limit(1)).close()
                positions: dict[str, TablePosition] = {}
                for kind, table in self._tables.items():
                    if (version := table.version) is not None:
                        newest = connection.scalar(table.newest(version))
                        low = None if newest is None else version.floor(version.number(newest))
                        positions[kind] = TablePosition(by=version.by, low=low)
            self._transaction = connection
            try:
                yield _Position(tables=positions).model_dump_json(exclude_none=True) if positions else None
            finally:
                self._transaction = None

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Generator[NumberedRecord, None, None]:
        """As of `Source`: by their keys, without rows that mark a deleted record."""
        return without_mixed_versions(self._valid(kind, problems, advance), self.name(kind), "table", problems)

    def _valid(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        table = self._tables[kind]
        for number, row in enumerate(self._rows(kind), 1):
            advance(1)
            try:
                if not table.is_deleted(row):
                    yield number, table.record(row)
            except RefusedRecordError as error:
                problems.add_refused(self.name(kind), number, error)
                if kind == "shops":
                    problems.add_hiding(hiding_of(number, table.readable(row)))

    def changes(self) -> SqlChanges | None:
        """The changes of the tables that have a version column; None if there is no such table."""
        followed = any(table.version is not None for table in self._tables.values())
        return SqlChanges(self._address, self._tables.values()) if followed else None

    def _rows(self, kind: str) -> Iterator[tuple[object, ...]]:
        statement = self._tables[kind].rows().execution_options(yield_per=ROWS_PER_PAGE)
        with self._connection(kind) as connection, connection.execute(statement) as rows:
            yield from rows

    @contextmanager
    def _connection(self, kind: str) -> Iterator[Connection]:
        with ExitStack() as stack:
            connection = self._transaction
            if connection is None:
                connection = stack.enter_context(transaction(self._engine))
            stack.enter_context(driver_errors(f"the table {self.name(kind)} cannot be read"))
            yield connection
