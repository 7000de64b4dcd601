"""Rows of trust: what makes a signal present, and what makes a check one that ran (A8)."""

from typing import Any

import pytest

from indexer.records.related import TrustRecord
from tests.support.catalogues import trust


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("fields", "measured", "present"),
    [
        ({}, True, True),
        ({"value": None}, True, False),
        ({"value": ""}, True, False),
        ({"value": []}, True, False),
        ({"value": ["card"]}, True, True),
        ({"source": None}, False, False),
        ({"source": ""}, False, False),
        ({"checked_at": None}, False, False),
    ],
)
def test_a_signal_is_present_with_value_source_and_time_and_measured_with_source_and_time(
    fields: dict[str, Any],
    measured: bool,  # noqa: FBT001 - a parameter
    present: bool,  # noqa: FBT001 - a parameter
) -> None:
    record = TrustRecord.model_validate({**trust("s1", "registrar", "R"), **fields})
    assert (record.is_measured, record.is_present) == (measured, present)
