"""An index for files of a typeahead in the session's OpenSearch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.fetching.files import Files, written_to


@pytest.fixture
def files(opensearch_url: str, tmp_path: Path) -> Iterator[Files]:
    with written_to(opensearch_url, tmp_path / "written") as files:
        yield files
