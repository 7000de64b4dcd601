"""A published catalogue in each engine, and services over them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from indexer.jobs.build import build
from indexer.sources.ndjson import NdjsonCatalogue
from tests.processes.endurance.places import Place, embedded_place, opensearch_place
from tests.processes.endurance.worlds import COLOURS, write_world

SHOPS: Final = 200


def publish(place: Place, catalogue: Path) -> None:
    """Build and publish a catalogue."""
    sink = place.sink()
    try:
        assert build(NdjsonCatalogue(catalogue), sink, place.states()).published
    finally:
        sink.close()


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """A catalogue that is published where a place is asked for."""
    return write_world(tmp_path / "catalogue", COLOURS[0], SHOPS)


@pytest.fixture
def embedded(tmp_path: Path, catalogue: Path) -> Iterator[Place]:
    """The embedded engine's place, with the catalogue."""
    with embedded_place(tmp_path) as place:
        publish(place, catalogue)
        yield place


@pytest.fixture
def opensearch(opensearch_url: str, tmp_path: Path, catalogue: Path) -> Iterator[Place]:
    """A place in the session's OpenSearch, with the catalogue."""
    with opensearch_place(opensearch_url, tmp_path) as place:
        publish(place, catalogue)
        yield place
