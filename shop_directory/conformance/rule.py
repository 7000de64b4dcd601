"""A rule, the options that it needs, and its verdict.

A rule is checked by steps, async functions of a `ServiceUnderTest`. A step returns when the rule holds. It raises
`RuleBrokenError` with the request, the expected and the received response, or `NothingToSeeError` when the catalogue
holds nothing that could break the rule: such a rule never counts as passed. A rule is a function, or steps as data:

    @rule("I15", "A category that no public shop carries is not listed.")
    async def _no_empty_category(service: ServiceUnderTest) -> None:
        for category in (await service.read("list_categories"))["results"].each():
            category.must(category["count"].whole() > 0, "a category of at least one shop")

    ROWS = (
        rule("I11", "offers is always an array.", of=_views)({"offers": Part.each}),
        rule("I68", "GET /suggest needs q.")(Call("GET /suggest?q=", shape={}), Call("GET /suggest", status=400)),
    )
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from shop_directory.conformance.exchange import Finding, Part, Request, Response, require
from shop_directory.conformance.service_under_test import Arguments, ServiceUnderTest, expect_equal

Step = Callable[[ServiceUnderTest], Awaitable[None]]
Subjects = Callable[[ServiceUnderTest], Awaitable[Iterable[Part]]]


class Need(StrEnum):
    """What a rule cannot be checked without; the value is the option that provides it."""

    TOKEN = "--token"  # noqa: S105 - the name of an option
    OPS_KEY = "--ops-key"
    UNDER_REVIEW = "--under-review"
    WRITE = "--write"


class RuleOutcome(StrEnum):
    """The result of checking a rule."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SEEN = "not_seen"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id, sentence, steps and needs; those that are `alone`, as all that write, are checked last."""

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
    outcome: RuleOutcome
    finding: Finding | None = None
    reason: str | None = None
    out_of_budget: bool = False


def rule(
    rule_id: str, statement: str, *needs: Need, alone: bool = False, of: Subjects | None = None
) -> Callable[..., Rule]:
    """Make a rule of its steps: as the decorator of a function, or called with steps in their order.

    With `of`, the steps are shapes, and functions of a value, that each of these values of the service must have.
    """

    def made(*steps: Any) -> Rule:  # noqa: ANN401 - steps or shapes
        made_of = steps if of is None else [_has(of, shape) for shape in steps]
        return Rule(rule_id, statement, tuple(made_of), frozenset(needs), alone or Need.WRITE in needs)

    return made


# What a value has to be: a check such as `Part.text`, or the shapes of an object's fields, of which it may have more.
Shape = Callable[[Part], object] | Mapping[str, "Shape"]
Caller = Callable[[ServiceUnderTest], ServiceUnderTest]

ANONYMOUS: Final[Caller] = attrgetter("anonymous")
WITH_UNKNOWN_TOKEN: Final[Caller] = attrgetter("with_unknown_token")
# The caller with the token, to whom no earlier response is given again.
AGAIN: Final[Caller] = attrgetter("fresh")
# Values of arguments that are known in a run only.
UNKNOWN_ID: Final = attrgetter("unknown_id")
UNKNOWN_DOMAIN: Final = attrgetter("unknown_domain")
SHOP_ID: Final = attrgetter("subjects.shop.id")
SHOP_DOMAIN: Final = attrgetter("subjects.shop.domain")


@dataclass(frozen=True, slots=True)
class Call:
    """A step of a rule: a call of a tool, or a method and a path with a body, and the response that it must have.

    A function among the arguments makes a value of the service under test. Without a `code`, of a problem, and a
    `shape`, of a JSON object, only the status is judged. `caller` chooses whose token is sent, to a path only if it is
    stated, as are `headers`.
    """

    target: str
    arguments: Arguments | bytes = field(default_factory=dict)
    status: int = 200
    code: str | None = None
    shape: Shape | None = None
    caller: Caller | None = None
    headers: tuple[tuple[str, str], ...] = ()

    async def __call__(self, service: ServiceUnderTest) -> None:
        """Send it, and raise RuleBrokenError for any other response."""
        response = await self._send(service if self.caller is None else self.caller(service))
        response.expect_status(self.status)
        if self.code is not None:
            response.problem(self.status, self.code)
        if self.shape is not None:
            expect_shape(response.json(self.status), self.shape)

    def _send(self, service: ServiceUnderTest) -> Awaitable[Response]:
        method, _, path = self.target.partition(" ")
        if path:
            body = self.arguments if isinstance(self.arguments, bytes) else b""
            token = service.token_header if self.caller else ()
            return service.send(Request(method, path, body, (*self.headers, *token)))
        if isinstance(self.arguments, bytes):
            return service.tool(method, self.arguments)
        values = {name: value(service) if callable(value) else value for name, value in self.arguments.items()}
        return service.tool(method, values)


def absent(tool: str) -> Step:
    """A step of a rule: a tool has one shop_not_found for unknown shops, and for a shop under review if one is given.

    Without one it raises NothingToSeeError.
    """

    async def step(service: ServiceUnderTest) -> None:
        for unknown in (service.unknown_id, service.unknown_domain):
            (await service.about_shop(tool, unknown)).problem(404, "shop_not_found")
        await expect_like_unknown(service, tool)
        missing = f"a shop under review ({Need.UNDER_REVIEW}); the responses for unknown shops are correct"
        require(service.under_review, missing)

    return step


async def expect_like_unknown(service: ServiceUnderTest, *tools: str) -> None:
    """Raise RuleBrokenError unless tools have the same response for a shop under review as for an unknown one."""
    for subject in service.under_review:
        for tool in tools:
            unknown = await service.about_shop(tool, service.unknown_like(subject))
            expect_equal(unknown, await service.about_shop(tool, subject), f"the same response of {tool} for both")


def _has(subjects: Subjects, shape: Shape) -> Step:
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


def naming(field_name: str) -> Mapping[str, Shape]:
    """A problem, of which an error names this field."""
    expected = f"an error on the field {field_name}"
    return {"errors": holding(lambda found: field_name in [one["field"].value for one in found.each()], expected)}


def exactly(value: Any) -> Shape:  # noqa: ANN401 - any JSON value
    """This value."""
    return lambda part: part.expect(value)


def holding(holds: Callable[[Part], object], expected: str) -> Shape:
    """A value for which this holds."""
    return lambda part: part.must(holds(part), expected)
