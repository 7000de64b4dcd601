"""The operator's database: opened for reading only, in transactions that see one moment (G3).

No error repeats what a driver said: its text may hold a row's values, and those may be of a shop under review (V1).
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

# In which a transaction sees the database as of its first statement. SQLite needs none: its transactions are so.
_SNAPSHOT_LEVELS: Final = {
    "postgresql": "REPEATABLE READ",
    "mysql": "REPEATABLE READ",
    "mariadb": "REPEATABLE READ",
    "mssql": "SNAPSHOT",
    "oracle": "SERIALIZABLE",
}
_CONNECT_REASONS: Final = (
    ("password authentication failed", "the user or the password is refused"),
    ("no password supplied", "it asks for a password"),
    ("no pg_hba.conf entry", "it takes no connections of this user from here"),
    ("Connection refused", "nothing listens there"),
    ("not known", "the host's name is not known"),
    ("resolve host", "the host's name is not known"),
    ("timeout", "it does not answer in time"),
    ("does not exist", "there is no such database, or no such user"),
    ("too many clients", "it has too many connections"),
    ("certificate", "its certificate is refused"),
    ("unable to open database file", "the file cannot be opened"),
)
_SQLSTATES: Final = {
    "25P03": "the server ends transactions that idle: see idle_in_transaction_session_timeout",
    "40001": "what was to be read changed meanwhile",
    "42501": "the user may not read it",
    "42703": "a column is gone",
    "42P01": "a table is gone",
    "57014": "the server cancelled it: see statement_timeout",
    "57P01": "the server ended the connection",
}


def open_engine(address: str, *, keep: bool = False) -> Engine:
    """An engine; nothing is connected yet.

    Args:
        address: a URL as SQLAlchemy has them, such as `postgresql://reader@host/database` or `sqlite:///shops.db`.
        keep: whether a connection is kept between two transactions; `dispose()` then ends it.

    Raises:
        CatalogueError: the URL is none, its driver is not installed, or a SQLite file is not there.
    """
    try:
        url = make_url(address)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        pool: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1} if keep else {"poolclass": NullPool}
        engine = create_engine(
            url, connect_args=_connect_args(url), hide_parameters=True, pool_pre_ping=keep, **pool
        ).execution_options(**_transaction_options(url))
    except (NoSuchModuleError, ImportError):
        raise CatalogueError("no driver is installed for the scheme of the catalogue's database URL") from None
    except (ArgumentError, ValueError):
        raise CatalogueError("the catalogue's database URL is none: write scheme://user@host/database") from None
    if url.get_backend_name() == "sqlite":
        _check_file(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def begin_reading(engine: Engine) -> Connection:
    """A connection whose transaction is open; the first statement fixes what it sees. Closing it ends both.

    Raises:
        CatalogueError: the database can't be reached.
    """
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        text = str(getattr(error, "orig", ""))
        reason = next((words for said, words in _CONNECT_REASONS if said in text), type(error).__name__)
        # Not chained: the driver's own text may be printed with a traceback.
        raise CatalogueError(f"the catalogue's database cannot be reached: {reason}") from None
    try:
        with told("the catalogue's database cannot be read"):
            connection.begin()
            if engine.dialect.name == "postgresql":
                # Times are read as text (psycopg knows no infinity), so their form must not be the server's choice.
                connection.exec_driver_sql("SET LOCAL timezone = 'UTC'")
                connection.exec_driver_sql("SET LOCAL datestyle = 'ISO, YMD'")
    except CatalogueError:
        end_reading(connection)
        raise
    return connection


def end_reading(connection: Connection) -> None:
    """End the transaction and its connection, whatever state they are in."""
    try:
        connection.rollback()
    except SQLAlchemyError:
        # Else the pool would try the same, and log what the driver says.
        connection.invalidate()
    connection.close()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Yields a connection of `begin_reading` and closes it."""
    connection = begin_reading(engine)
    try:
        yield connection
    finally:
        end_reading(connection)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turns the database's errors into a CatalogueError of ours that begins with `what`."""
    try:
        yield
    except SQLAlchemyError as error:
        raise CatalogueError(f"{what}: {_reason(error)}") from None


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
        # One thread at a time uses a connection, but not always the one that opened it.
        bound = {} if "timeout" in url.query else {"timeout": BUSY_BOUND_S}
        return {"check_same_thread": False, **bound}
    return {}


def _transaction_options(url: URL) -> dict[str, object]:
    backend = url.get_backend_name()
    level = {"isolation_level": _SNAPSHOT_LEVELS[backend]} if backend in _SNAPSHOT_LEVELS else {}
    return {**level, **({"postgresql_readonly": True} if backend == "postgresql" else {})}


def _check_file(url: URL) -> None:
    # Opening a file that is not there would make an empty one.
    if not url.database or url.database == ":memory:":
        raise CatalogueError("a SQLite catalogue is a file: write sqlite:///path/to/file")
    if not url.database.startswith("file:") and not Path(url.database).is_file():
        raise CatalogueError(f"there is no SQLite file at {url.database}")


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401 - the driver's connection
    # Python's driver opens transactions only before it writes, and would fail a whole page for one bad text.
    connection.isolation_level = None
    connection.text_factory = _lenient_text
    connection.execute("PRAGMA query_only = ON")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _lenient_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
