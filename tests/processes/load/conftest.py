"""A published catalogue in each engine, which services read and nothing writes to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.worlds import COLOURS, Location, embedded_location, opensearch_location, write_world

SHOPS: Final = 200


@pytest.fixture(scope="package")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("world") / "catalogue", COLOURS[0], SHOPS)


@pytest.fixture(scope="package")
def embedded(tmp_path_factory: pytest.TempPathFactory, catalogue: Path) -> Iterator[Location]:
    with embedded_location(tmp_path_factory.mktemp("embedded")) as location:
        location.build(catalogue)
        yield location


@pytest.fixture(scope="package")
def opensearch(opensearch_url: str, tmp_path_factory: pytest.TempPathFactory, catalogue: Path) -> Iterator[Location]:
    with opensearch_location(opensearch_url, tmp_path_factory.mktemp("opensearch")) as location:
        location.build(catalogue)
        yield location
