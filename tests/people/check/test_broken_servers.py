"""Each server that is wrong in one way fails for that."""

import pytest

from shop_directory.conformance.rules import RULES
from tests.people.check.breaking import Breakage
from tests.people.check.broken import BREAKAGES
from tests.people.check.stage import Stage


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: f"{breakage.rule} {breakage.how}")
def test_a_broken_server_fails_for_what_it_breaks(stage: Stage, breakage: Breakage) -> None:
    assert stage.failed(breakage, [rule for rule in RULES if rule.id == breakage.rule]) == {breakage.rule}
