"""A published catalogue in each engine, and services over them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.processes.endurance.locations import Location, embedded_location, opensearch_location
from tests.processes.endurance.worlds import COLOURS, write_world

SHOPS: Final = 200


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """A catalogue that is published in each location."""
    return write_world(tmp_path / "catalogue", COLOURS[0], SHOPS)


@pytest.fixture
def embedded(tmp_path: Path, catalogue: Path) -> Iterator[Location]:
    """The embedded engine's location, with the catalogue."""
    with embedded_location(tmp_path) as location:
        location.build(catalogue)
        yield location


@pytest.fixture
def opensearch(opensearch_url: str, tmp_path: Path, catalogue: Path) -> Iterator[Location]:
    """A location in the session's OpenSearch, with the catalogue."""
    with opensearch_location(opensearch_url, tmp_path) as location:
        location.build(catalogue)
        yield location
