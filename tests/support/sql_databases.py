"""Databases that a test writes and the SQL source reads: a SQLite file, or a database of a real PostgreSQL."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Engine, MetaData, Table, Text, create_engine, make_url, text
from sqlalchemy.pool import NullPool
from sqlalchemy.types import JSON, TypeEngine

# Ends every connection of a database but the one that says so.
CUT_OFF = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
CATEGORIES = [{"slug": "a", "name": "A"}]
FIELDS: dict[str, TypeEngine[Any]] = {
    "id": Text(),
    "name": Text(),
    "domain": Text(),
    "categories": JSON(),
    "visibility": Text(),
}


def shop_row(number: int, **more: object) -> dict[str, object]:
    shop_id = f"s{number:05}"
    plain = {"id": shop_id, "name": f"Shop {number}", "domain": f"{shop_id}.internal", "categories": CATEGORIES}
    return {**plain, "visibility": "public", **more}


@dataclass(frozen=True, slots=True)
class Database:
    """A database of one test: its URL for the source, and an engine that writes."""

    url: str
    engine: Engine

    @property
    def is_postgres(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    def table(self, name: str, fields: Mapping[str, TypeEngine[Any]]) -> Table:
        made = Table(name, MetaData(), *(Column(field, kind) for field, kind in fields.items()))
        made.create(self.engine)
        return made

    def run(self, *statements: Any) -> None:  # noqa: ANN401 - statements of SQLAlchemy
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(statement)


@contextmanager
def sqlite_file(folder: Path) -> Iterator[Database]:
    """Yields an SQLite file in the mode in which writers don't wait for readers."""
    url = f"sqlite:///{folder}/catalogue.sqlite"
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    yield Database(url, engine)
    engine.dispose()


@contextmanager
def postgres_database_of(server_url: str) -> Iterator[Database]:
    name = f"test_{secrets.token_hex(6)}"
    server = create_engine(server_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    url = make_url(server_url).set(database=name)
    yield Database(url.render_as_string(hide_password=False), create_engine(url, poolclass=NullPool))
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    server.dispose()
