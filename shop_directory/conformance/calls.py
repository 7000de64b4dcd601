"""Rules as data: calls with the response that each must have, and the shapes of JSON values.

rule("I68", "GET /suggest needs q and no credentials.")(
    Call("GET /suggest?q=", shape={"shops": Part.each}), Call("GET /suggest?limit=3", status=400)
)
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from shop_directory.conformance.exchange import Part, Request, Response
from shop_directory.conformance.rule import Step
from shop_directory.conformance.service_under_test import Arguments, ServiceUnderTest

# What a value has to be: a check such as `Part.text`, or the shapes of an object's fields, of which it may have more.
Shape = Callable[[Part], object] | Mapping[str, "Shape"]
Caller = Callable[[ServiceUnderTest], ServiceUnderTest]

ANONYMOUS: Final[Caller] = attrgetter("anonymous")
WITH_UNKNOWN_TOKEN: Final[Caller] = attrgetter("with_unknown_token")
# Values of arguments that are known in a run only.
UNKNOWN_ID: Final = attrgetter("unknown_id")
UNKNOWN_DOMAIN: Final = attrgetter("unknown_domain")
SHOP_ID: Final = attrgetter("shop_id")
SHOP_DOMAIN: Final = attrgetter("shop_domain")


@dataclass(frozen=True, slots=True)
class Call:
    """A step of a rule: a call, and the response that it must have.

    Attributes:
        target: a tool, or a method and a path.
        arguments: of a tool; a function makes a value of the service under test.
        status: of the response, which is all that is judged without a code and a shape.
        code: of the problem that the response must be.
        shape: of the JSON object that the response must be.
        caller: whose token is sent with it.
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
            return service.send(Request(method, path))
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
