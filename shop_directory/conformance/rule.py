"""A rule that is checked, and what can come out of it.

A rule is an async function of a `Visit`. It returns when the rule holds; it raises `RuleBrokenError` with what was
asked, expected and got; it raises `NothingToSeeError` when the catalogue has no subject on which the rule shows. What
can't be seen is never passed.

    @rule("I11", "offers is always an array.")
    async def offers_are_there(visit: Visit) -> None:
        page = (await visit.tool("find_shop", {"query": ""})).answer()
        for shop in page["results"].each():
            shop["offers"].each()
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from shop_directory.conformance.findings import Finding
from shop_directory.conformance.service_under_test import Visit

Check = Callable[[Visit], Awaitable[None]]


class Need(StrEnum):
    """What a rule can't be asked without; the value is the option that gives it."""

    TOKEN = "--token"  # noqa: S105 - the name of an option
    OPS_KEY = "--ops-key"
    UNDER_REVIEW = "--under-review"
    WRITE = "--write"


class Outcome(StrEnum):
    """What came out of a rule."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SEEN = "not_seen"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: that of the interface's sentence or the decision.
        statement: the rule in one plain sentence.
        check: asks, and raises when the rule is broken.
        needs: without all of these the rule is not asked.
        alone: asked after all others and one at a time; rules that write always are.
    """

    id: str
    statement: str
    check: Check
    needs: frozenset[Need] = frozenset()
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out of one rule.

    Attributes:
        rule: which one.
        outcome: of the four.
        finding: of a failure.
        reason: why it was not asked, or what would be needed to see it.
        spent: it was not asked because the run had spent its requests or its time.
    """

    rule: Rule
    outcome: Outcome
    finding: Finding | None = None
    reason: str | None = None
    spent: bool = False


def rule(rule_id: str, statement: str, *needs: Need, alone: bool = False) -> Callable[[Check], Rule]:
    """Make a rule of a function."""

    def made(check: Check) -> Rule:
        return Rule(rule_id, statement, check, frozenset(needs), alone or Need.WRITE in needs)

    return made
