"""Projection of shipping and trust: what is stated, what is present, and what is a gap (A7, A8)."""

from typing import Any, Final

import pytest

from index_mappings.documents import TRUST_KINDS, FactsDocument
from indexer.projection.facts import project_facts
from indexer.records.related import ShippingRecord, TrustRecord
from tests.support.catalogues import shipping, trust

REFS: Final = ("s1", "nord.internal")
TIME: Final = "2031-05-06T07:08:09Z"


def _facts(*rows: dict[str, Any], shipped: dict[str, Any] | None = None) -> FactsDocument:
    statement = None if shipped is None else ShippingRecord.model_validate(shipped)
    return project_facts(*REFS, statement, tuple(map(TrustRecord.model_validate, rows)))


@pytest.mark.rule("A7", "A13")
def test_a_destination_that_is_stated_twice_counts_once_and_none_at_all_is_no_gap() -> None:
    twice, none = (
        {"destinations": stated, "checked_at": "2031-05-06T09:08:09+02:00"} for stated in (["EU", "CH", "EU"], [])
    )
    carried = [_facts(shipped=shipping("s1", **stated)).shipping or {} for stated in (twice, none)]
    assert [(stated["destinations"], stated["checked_at"]) for stated in carried] == [(["EU", "CH"], TIME), ([], TIME)]


@pytest.mark.rule("A8", "M11.other_lists", "I30")
def test_present_signals_are_in_the_one_order_whatever_the_order_of_the_rows() -> None:
    document = _facts(*(trust("s1", kind, kind.upper()) for kind in reversed(TRUST_KINDS)))
    assert document.signals == tuple(
        {"kind": kind, "value": kind.upper(), "source": "test", "checked_at": TIME} for kind in TRUST_KINDS
    )
    assert (document.trusted_refs, document.pipeline_gaps) == (REFS, ())


@pytest.mark.rule("A8", "I30", "I34")
@pytest.mark.parametrize(
    ("fields", "present", "gap"),
    [
        ({"value": "R"}, True, False),
        ({"value": ["card", "invoice"]}, True, False),
        ({"value": None}, False, True),
        ({"value": ""}, False, True),
        ({"value": []}, False, True),
        ({"value": "R", "source": None}, False, False),
        ({"value": "R", "source": ""}, False, False),
        ({"value": "R", "checked_at": None}, False, False),
        ({"value": None, "source": None}, False, False),
    ],
)
def test_a_row_is_a_signal_a_gap_or_nothing(fields: dict[str, Any], *, present: bool, gap: bool) -> None:
    document = _facts({**trust("s1", "registrar"), **fields})
    signal = {"kind": "registrar", "value": fields["value"], "source": "test", "checked_at": TIME}
    assert document.signals == ((signal,) if present else ())
    assert document.pipeline_gaps == (("registrar",) if gap else ())
    assert document.trusted_refs == (REFS if present else ())
