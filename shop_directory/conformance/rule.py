"""A rule, the options that it needs, and its verdict.

A rule is checked by steps, async functions of a `ServiceUnderTest`. A step returns when the rule holds. It raises
`RuleBrokenError` with the request, what was expected and what came instead, or `NothingToSeeError` when the catalogue
holds nothing that could break the rule: such a rule never counts as passed. A rule is a function, or steps as data:

    @rule("I15", "A category that no public shop carries is not listed.")
    async def _no_empty_category(service: ServiceUnderTest) -> None:
        for category in (await service.read("list_categories"))["results"].each():
            category.must(category["count"].whole() > 0, "a category of at least one shop")

    ROWS = (
        rule("I11", "offers is always an array.")(has(_views, {"offers": Part.each})),
        rule("I68", "GET /suggest needs q.")(Call("GET /suggest?q=", shape={}), Call("GET /suggest", status=400)),
    )
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from shop_directory.conformance.exchange import Finding, Part, Response
from shop_directory.conformance.service_under_test import Arguments, ServiceUnderTest

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


# What a value has to be: a check such as `Part.text`, or the shapes of an object's fields, of which it may have more.
Shape = Callable[[Part], object] | Mapping[str, "Shape"]
Caller = Callable[[ServiceUnderTest], ServiceUnderTest]

ANONYMOUS: Final[Caller] = attrgetter("anonymous")
WITH_UNKNOWN_TOKEN: Final[Caller] = attrgetter("with_unknown_token")
# Values of arguments that are known in a run only.
UNKNOWN_ID: Final = attrgetter("unknown_id")
SHOP_ID: Final = attrgetter("shop_id")
SHOP_DOMAIN: Final = attrgetter("shop_domain")


@dataclass(frozen=True, slots=True)
class Call:
    """A step of a rule: a call of a tool, or of a method and a path, and the response that it must have.

    A function among the arguments makes a value of the service under test. Without a `code`, of a problem, and a
    `shape`, of a JSON object, only the status is judged. `caller` chooses whose token is sent, with GET only if stated.
    """

    target: str
    arguments: Arguments | bytes = field(default_factory=dict)
    status: int = 200
    code: str | None = None
    shape: Shape | None = None
    caller: Caller | None = None

    async def __call__(self, service: ServiceUnderTest) -> None:
        """Send it, and raise RuleBrokenError for any other response."""
        response = await self._send(service if self.caller is None else self.caller(service))
        if self.code is not None:
            response.problem(self.status, self.code)
        elif self.shape is None:
            response.expect_status(self.status)
        else:
            expect_shape(response.json(self.status), self.shape)

    def _send(self, service: ServiceUnderTest) -> Awaitable[Response]:
        method, _, path = self.target.partition(" ")
        if path:
            return service.get(path, *(service.token_header if self.caller else ()))
        if isinstance(self.arguments, bytes):
            return service.tool(method, self.arguments)
        values = {name: value(service) if callable(value) else value for name, value in self.arguments.items()}
        return service.tool(method, values)


def has(subjects: Callable[[ServiceUnderTest], Awaitable[Iterable[Part]]], shape: Shape) -> Step:
    """A step of a rule: each of these values is of this shape."""

    async def step(service: ServiceUnderTest) -> None:
        for part in await subjects(service):
            expect_shape(part, shape)

    return step


def expect_shape(part: Part, shape: Shape) -> None:
    """Raise RuleBrokenError unless a value is of a shape."""
    if callable(shape):
        shape(part)
    else:
        for name, of_field in shape.items():
            expect_shape(part[name], of_field)


def each(shape: Shape) -> Shape:
    """An array of values of this shape."""
    return lambda part: [expect_shape(element, shape) for element in part.each()]


def null_or(shape: Shape) -> Shape:
    """Null, or a value of this shape."""
    return lambda part: part.value is None or expect_shape(part, shape)


def exactly(value: Any) -> Shape:  # noqa: ANN401 - any JSON value
    """This value."""
    return lambda part: part.expect(value)
