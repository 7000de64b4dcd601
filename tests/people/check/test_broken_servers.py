"""Each server that is wrong in one way fails for that, and a sample of them, asked all rules, for nothing else."""

import pytest

from shop_directory.conformance.rules import RULES
from tests.people.check.breaking import Breakage
from tests.people.check.broken import BREAKAGES
from tests.people.check.stage import Stage


def _named(breakage: Breakage) -> str:
    return f"{breakage.rule} {breakage.how}"


@pytest.mark.parametrize("breakage", BREAKAGES, ids=_named)
def test_a_broken_server_fails_for_what_it_breaks(stage: Stage, breakage: Breakage) -> None:
    rules = [rule for rule in RULES if rule.id in breakage.broken]
    assert stage.failed(breakage, rules) == breakage.broken


@pytest.mark.parametrize("breakage", BREAKAGES[::6], ids=_named)
def test_a_broken_server_fails_for_nothing_else(stage: Stage, breakage: Breakage) -> None:
    assert stage.failed(breakage) == breakage.broken
