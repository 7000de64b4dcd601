"""The real databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sql_databases import Database, postgres_database_of, sqlite_file


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    with sqlite_file(tmp_path) as database:
        yield database


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    with postgres_database_of(postgres_url) as database:
        yield database


@pytest.fixture(params=["sqlite_database", pytest.param("postgres_database", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found
