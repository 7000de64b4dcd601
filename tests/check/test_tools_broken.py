"""Each server that is wrong in one way about a tool fails for that, and a sample of them for nothing else."""

import pytest

from service.check.rules import RULES
from tests.check import (
    broken_calls,
    broken_coupons,
    broken_decided,
    broken_finding,
    broken_offers,
    broken_reports,
    broken_shipping,
    broken_shops,
    broken_trust,
)
from tests.check.breaking import Breakage
from tests.check.stage import Stage

BREAKAGES = (
    *broken_calls.BREAKAGES,
    *broken_shops.BREAKAGES,
    *broken_finding.BREAKAGES,
    *broken_coupons.BREAKAGES,
    *broken_shipping.BREAKAGES,
    *broken_trust.BREAKAGES,
    *broken_offers.BREAKAGES,
    *broken_reports.BREAKAGES,
    *broken_decided.BREAKAGES,
)


def _named(breakage: Breakage) -> str:
    return f"{breakage.rule} {breakage.how}"


@pytest.mark.parametrize("breakage", BREAKAGES, ids=_named)
def test_a_broken_server_fails_for_what_it_breaks(stage: Stage, breakage: Breakage) -> None:
    rules = [rule for rule in RULES if rule.id in breakage.broken]
    assert stage.failed(breakage, rules) == breakage.broken


@pytest.mark.parametrize("breakage", BREAKAGES[::6], ids=_named)
def test_a_broken_server_fails_for_nothing_else(stage: Stage, breakage: Breakage) -> None:
    assert stage.failed(breakage) == breakage.broken
