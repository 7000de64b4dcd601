"""The shipped sample, read once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import indexer.sample


@pytest.fixture(scope="package")
def sample() -> Mapping[str, Sequence[dict[str, Any]]]:
    """The records of each kind."""
    return {
        path.stem: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in Path(indexer.sample.__file__).parent.glob("*.ndjson")
    }


@pytest.fixture(scope="package")
def by_id(sample: Mapping[str, Sequence[dict[str, Any]]]) -> Mapping[str, dict[str, Any]]:
    """The shops by their ids."""
    return {shop["id"]: shop for shop in sample["shops"]}
