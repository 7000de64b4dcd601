"""An operator who has built nothing yet."""

from pathlib import Path

import pytest

from tests.unit.indexer.commands.index_operator import Operator


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)
