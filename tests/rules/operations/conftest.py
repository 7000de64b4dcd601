"""One world for all tests of this folder, served open and behind a key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.operations.worlds import KEY, serving, world


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(tmp_path_factory.mktemp("operations"))


@pytest.fixture(scope="session")
def open_base(index: Path) -> Iterator[str]:
    with serving(index) as base:
        yield base


@pytest.fixture(scope="session")
def keyed_base(index: Path) -> Iterator[str]:
    with serving(index, ops_key=KEY) as base:
        yield base
