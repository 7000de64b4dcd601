"""The folder of the examples, filled once for all tests of the command line."""

from pathlib import Path

import pytest

from tests.people.commands.world import fill


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("commands")
    fill(found)
    return found
