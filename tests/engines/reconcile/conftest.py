"""The world in each of the two real engines."""

from pathlib import Path

import pytest

from tests.engines.conftest import Engine
from tests.engines.reconcile.world import World, built


@pytest.fixture
def world(engine: Engine, tmp_path: Path) -> World:
    return built(engine.sink, tmp_path)
