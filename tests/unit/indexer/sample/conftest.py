"""The shipped sample, read once."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.sample import SAMPLE, records


@pytest.fixture(scope="package")
def sample() -> Mapping[str, Sequence[dict[str, Any]]]:
    """The records of each kind."""
    return {path.stem: records(path) for path in SAMPLE.glob("*.ndjson")}


@pytest.fixture(scope="package")
def by_id(sample: Mapping[str, Sequence[dict[str, Any]]]) -> Mapping[str, dict[str, Any]]:
    """The shops by their ids."""
    return {shop["id"]: shop for shop in sample["shops"]}
