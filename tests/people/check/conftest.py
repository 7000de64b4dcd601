"""The sample catalogue behind the real service, in this process, for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.sinks.embedded.sink import EmbeddedSink
from tests.people.check.stage import Stage, staged
from tests.support.catalogues import build_into
from tests.support.sample import SAMPLE


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("sample") / "index"
    build_into(EmbeddedSink(index), SAMPLE)
    return index


@pytest.fixture(scope="session")
def stage(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(sample_index, tmp_path_factory.mktemp("stage")) as made:
        yield made
