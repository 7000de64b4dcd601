"""Imports of sheets, each in a folder of its own."""

from pathlib import Path

import pytest

from tests.unit.indexer.catalogue.imports import Catalogue, Import


@pytest.fixture
def given(tmp_path: Path) -> Import:
    return Import(tmp_path)


@pytest.fixture
def stocked(tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path)
