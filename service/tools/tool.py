"""What a tool is: one frozen record, from which every door, every schema and the tests are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, Protocol

from pydantic import BaseModel, ConfigDict

from service.tools.context import ToolContext
from service.tools.request import RequestT


class TokenRule(StrEnum):
    """Whether a call needs an API token."""

    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Effects:
    """What a call does beside answering.

    Attributes:
        read_only: it changes nothing.
        repeatable: a second equal call changes nothing more.
    """

    read_only: bool
    repeatable: bool


READS = Effects(read_only=True, repeatable=True)
BEYOND_THE_INTERFACE: Final = "This tool is beyond the interface: another service with the same interface may lack it."


class Shown(Protocol):
    """What a tool answers: it need not be the model that describes it, only come out as that would."""

    def as_wire(self) -> dict[str, Any]:
        """The object that every door sends."""


class ToolResponse(BaseModel):
    """The base of all responses; field names, or their aliases, are the interface's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def as_wire(self) -> dict[str, Any]:
        """The object that every door sends."""
        return self.model_dump(by_alias=True)


@dataclass(frozen=True, slots=True)
class Example:
    """A call for people to try."""

    summary: str
    arguments: dict[str, Any]


def no_extra_cost(_: object) -> int:
    """The extra cost of most tools: none."""
    return 0


@dataclass(frozen=True, slots=True)
class Tool(Generic[RequestT]):
    """A tool.

    Attributes:
        name: of the tool, its route and its MCP name.
        title: a few words for people.
        description: for people and for models: what it does, when to call it, what its answer means.
        request: what it takes.
        response: describes what it answers.
        token: whether a call needs a token.
        effects: what a call does beside answering.
        run: its rules; raises ServiceError.
        examples: calls to try, the first one the plainest.
        extra_cost: the units of its quota that a valid call costs beyond the one that admission takes.
        note: for people only, shown in OpenAPI and on the page of the tools; empty for most tools.
    """

    name: str
    title: str
    description: str
    request: type[RequestT]
    response: type[ToolResponse]
    token: TokenRule
    effects: Effects
    run: Callable[[RequestT, ToolContext], Awaitable[Shown]]
    examples: tuple[Example, ...]
    extra_cost: Callable[[RequestT], int] = no_extra_cost
    note: str = ""
