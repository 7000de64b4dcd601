"""Opens the operator's database for reading only, in transactions that see it as of their first statement (G3).

No error repeats a driver's message, which may hold values of rows of shops that are not public (V1).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from indexer.records.problems import CatalogueError

CONNECT_BOUND_S: Final = 10
BUSY_BOUND_S: Final = 30

# The isolation level at which a transaction sees the database as of its first statement; SQLite has no other.
_REPEATABLE_LEVELS: Final = {
    "postgresql": "REPEATABLE READ",
    "mysql": "REPEATABLE READ",
    "mariadb": "REPEATABLE READ",
    "mssql": "SNAPSHOT",
    "oracle": "SERIALIZABLE",
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
        engine = create_engine(
            url, connect_args=_connect_args(url), hide_parameters=True, pool_pre_ping=pooled, **pool
        ).execution_options(**_transaction_options(url))
    except (NoSuchModuleError, ImportError):
        raise CatalogueError("no driver is installed for the scheme of the catalogue's database URL") from None
    except (ArgumentError, ValueError):
        raise CatalogueError("the catalogue's database URL is invalid: write scheme://user@host/database") from None
    if url.get_backend_name() == "sqlite":
        _check_file(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def begin_transaction(engine: Engine) -> Connection:
    """A connection with an open transaction, which sees the database as of its first statement."""
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
    except CatalogueError:
        end_transaction(connection)
        raise
    return connection


def end_transaction(connection: Connection) -> None:
    """End the transaction and close its connection, also after an error."""
    try:
        connection.rollback()
    except SQLAlchemyError:
        # Otherwise the pool would try the same, and log the driver's message.
        connection.invalidate()
    connection.close()


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Yield a connection of `begin_transaction` and close it afterwards."""
    connection = begin_transaction(engine)
    try:
        yield connection
    finally:
        end_transaction(connection)


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


def _connect_args(url: URL) -> dict[str, object]:
    if url.get_backend_name() == "postgresql" and "connect_timeout" not in url.query:
        return {"connect_timeout": CONNECT_BOUND_S}
    if url.get_backend_name() == "sqlite":
        # A connection may be used by another thread than the one that opened it, but by one thread at a time.
        timeout = {} if "timeout" in url.query else {"timeout": BUSY_BOUND_S}
        return {"check_same_thread": False, **timeout}
    return {}


def _transaction_options(url: URL) -> dict[str, object]:
    backend = url.get_backend_name()
    level = {"isolation_level": _REPEATABLE_LEVELS[backend]} if backend in _REPEATABLE_LEVELS else {}
    return {**level, **({"postgresql_readonly": True} if backend == "postgresql" else {})}


def _check_file(url: URL) -> None:
    # Opening a missing file would create an empty one.
    if not url.database or url.database == ":memory:":
        raise CatalogueError("a SQLite catalogue is a file: write sqlite:///path/to/file")
    if not url.database.startswith("file:") and not Path(url.database).is_file():
        raise CatalogueError(f"there is no SQLite file at {url.database}")


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's connection
    # Python's driver begins transactions only before writes, and would fail a whole page because of one invalid text.
    connection.isolation_level = None
    connection.text_factory = _lenient_text
    connection.execute("PRAGMA query_only = ON")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _lenient_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
