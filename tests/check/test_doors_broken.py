"""Each server that is wrong about suggestions, MCP, probes, credentials, errors or headers fails for what it breaks.

A sample of them is asked all rules, and fails for nothing else.
"""

import pytest

from service.check.rules import RULES
from tests.check import (
    broken_credentials,
    broken_errors,
    broken_headers,
    broken_hidden,
    broken_mcp,
    broken_operations,
    broken_suggest,
)
from tests.check.breaking import Breakage
from tests.check.stage import Stage

BREAKAGES = (
    *broken_suggest.BREAKAGES,
    *broken_mcp.BREAKAGES,
    *broken_operations.BREAKAGES,
    *broken_credentials.BREAKAGES,
    *broken_errors.BREAKAGES,
    *broken_headers.BREAKAGES,
    *broken_hidden.BREAKAGES,
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
