"""The definition of a tool: one frozen record, from which transports, schemas and tests are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Generic

from pydantic import BaseModel, ConfigDict

from service.reports.protocol import ReportQueue
from service.search.protocol import Snapshot
from service.tools.request import RequestT


class TokenRule(StrEnum):
    """Whether a call needs an API token."""

    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of a call besides its answer.

    Attributes:
        read_only: a call changes nothing.
        repeatable: a second equal call changes nothing more.
    """

    read_only: bool
    repeatable: bool


READS: Final = Effects(read_only=True, repeatable=True)
BEYOND_THE_INTERFACE: Final = "This tool is beyond the interface: another service with the same interface may lack it."


@dataclass(frozen=True, slots=True)
class ToolContext:
    """All that a call of a tool may use.

    Attributes:
        search: the generation that the whole answer comes from (C2).
        now: the time of the call, read once.
        channel: the transport as display policies name it (A5).
        country: the caller's country as a trusted proxy states it; None otherwise.
        most_coupons: the bound on the coupons of all shops for this transport; None for no bound (A6).
        reports: the queue of reports.
        source: the id of the caller's token, under which reports are stored; None for an anonymous call (Q5).
    """

    search: Snapshot
    now: datetime
    channel: str
    country: str | None
    most_coupons: int | None
    reports: ReportQueue
    source: str | None


class ToolResponse(BaseModel):
    """The base of all responses; field names or their aliases are those of the interface."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# The answer of a tool: the model that describes it, or the object that every transport sends.
ToolAnswer = ToolResponse | dict[str, Any]


def is_none(value: object) -> bool:
    """Whether a value is None; as `exclude_if` it leaves a field out of the answer."""
    return value is None


@dataclass(frozen=True, slots=True)
class Example:
    """A call for people to try."""

    summary: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool(Generic[RequestT]):
    """A tool.

    Attributes:
        name: of the tool, its route and its MCP name.
        title: a few words for people.
        description: for people and for models: what it does, when to call it, what its answer means.
        request: the model of its arguments.
        response: the model that describes its answer.
        token: whether a call needs a token.
        run: runs a call; raises ServiceError.
        examples: calls to try, the simplest one first.
        effects: the effects of a call besides its answer.
        extra_cost: the quota units of a valid call beyond the one that admission counts; None for none.
        note: a text for people only, shown in OpenAPI and on the page of the tools; mostly empty.
    """

    name: str
    title: str
    description: str
    request: type[RequestT]
    response: type[ToolResponse]
    token: TokenRule
    run: Callable[[RequestT, ToolContext], Awaitable[ToolAnswer]]
    examples: tuple[Example, ...]
    effects: Effects = READS
    extra_cost: Callable[[RequestT], int] | None = None
    note: str = ""
