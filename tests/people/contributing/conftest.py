"""A copy of the project for each test that plants something."""

from pathlib import Path

import pytest

from tests.people.contributing.planting import Copy, copy_of_the_project


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """The project as it is now."""
    return copy_of_the_project(tmp_path / "copy")
