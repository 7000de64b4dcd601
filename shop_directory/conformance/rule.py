"""A rule, the options that it needs, and its verdict.

A rule is checked by steps, async functions of a `ServiceUnderTest`. A step returns when the rule holds. It raises
`RuleBrokenError` with the request, what was expected and what came instead, or `NothingToSeeError` when the catalogue
holds nothing that could break the rule: such a rule never counts as passed. A rule is a function, or steps as data:

    @rule("I15", "A category that no public shop carries is not listed.")
    async def _no_empty_category(service: ServiceUnderTest) -> None:
        for category in (await service.read("list_categories"))["results"].each():
            category.must(category["count"].whole() > 0, "a category of at least one shop")

    ROWS = (rule("I11", "offers is always an array.")(has(_views, {"offers": Part.each})),)
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from shop_directory.conformance.exchange import Finding
from shop_directory.conformance.service_under_test import ServiceUnderTest

Step = Callable[[ServiceUnderTest], Awaitable[None]]


class Need(StrEnum):
    """What a rule cannot be checked without; the value is the option that provides it."""

    TOKEN = "--token"  # noqa: S105 - the name of an option
    OPS_KEY = "--ops-key"
    UNDER_REVIEW = "--under-review"
    WRITE = "--write"


class Outcome(StrEnum):
    """The result of checking a rule."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SEEN = "not_seen"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the id of the sentence in the interface or of the decision, the sentence, and its steps.

    It is checked only if all of its needs are given. A rule that is `alone`, as all are that write, is checked after
    all others, one at a time.
    """

    id: str
    statement: str
    steps: tuple[Step, ...]
    needs: frozenset[Need] = frozenset()
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one rule: the finding of a failure, or why the rule was not checked or had nothing to see.

    `out_of_budget` says that it was not checked because the run had used up its requests or its time.
    """

    rule: Rule
    outcome: Outcome
    finding: Finding | None = None
    reason: str | None = None
    out_of_budget: bool = False


def rule(rule_id: str, statement: str, *needs: Need, alone: bool = False) -> Callable[..., Rule]:
    """Make a rule of its steps: as the decorator of a function, or called with steps in their order."""

    def made(*steps: Step) -> Rule:
        return Rule(rule_id, statement, steps, frozenset(needs), alone or Need.WRITE in needs)

    return made
