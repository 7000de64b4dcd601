"""Each engine in its turn, as a location that jobs of other processes can be sent to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.endurance.worlds import Location, embedded_location, opensearch_location


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Location]:
    with embedded_location(tmp_path) as location:
        yield location


@pytest.fixture
def opensearch(opensearch_url: str, tmp_path: Path) -> Iterator[Location]:
    with opensearch_location(opensearch_url, tmp_path) as location:
        yield location


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def location(request: pytest.FixtureRequest) -> Location:
    found: Location = request.getfixturevalue(request.param)
    return found
