"""Projection of shipping: what is stated (A7)."""

from typing import Any, Final

import pytest

from indexer.projection.facts import project_facts
from indexer.records.related import ShippingRecord
from tests.support.catalogues import shipping

TIME: Final = "2031-05-06T07:08:09Z"


def _shipping(**stated: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    record = ShippingRecord.model_validate(shipping("s1", checked_at="2031-05-06T09:08:09+02:00", **stated))
    return dict(project_facts("s1", "nord.internal", record, ()).shipping or {})


@pytest.mark.rule("A7", "A13")
def test_a_destination_that_is_stated_twice_counts_once_and_none_at_all_is_no_gap() -> None:
    carried = [_shipping(destinations=stated) for stated in (["EU", "CH", "EU"], [])]
    assert [(stated["destinations"], stated["checked_at"]) for stated in carried] == [(["EU", "CH"], TIME), ([], TIME)]
