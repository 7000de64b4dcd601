"""Each engine in its turn, as a place that jobs of other processes can be sent to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.endurance.places import Place, embedded_place, opensearch_place


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Place]:
    """A place of the embedded engine."""
    with embedded_place(tmp_path) as place:
        yield place


@pytest.fixture
def opensearch(opensearch_url: str, tmp_path: Path) -> Iterator[Place]:
    """A place in the session's OpenSearch."""
    with opensearch_place(opensearch_url, tmp_path) as place:
        yield place


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def place(request: pytest.FixtureRequest) -> Place:
    """Each engine's place."""
    found: Place = request.getfixturevalue(request.param)
    return found
