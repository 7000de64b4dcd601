"""A tool that returns its input, and calls of it over MCP, each answered on both ways."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from service.auth.sqlite import SqliteTokenStore
from service.auth.verifier import TokenVerifier
from service.calls.admission import Admission
from service.calls.dispatch import Dispatcher
from service.calls.live_data import LiveData
from service.errors import FieldError, InvalidInputError
from service.limits.memory import MemoryLimiter
from service.limits.policy import QuotaClass, QuotaPolicy
from service.reports.sqlite import SqliteReports
from service.tools.request import Text, ToolRequest
from service.tools.tool import TokenRule, Tool, ToolContext, ToolResponse
from tests.support.both_ways import MODERN, OLDER, BothWays, Lines, Sent, plain_headers, plain_message, raw
from tests.support.worlds import reference_world

MANY: Final = QuotaClass(reads=10**9, suggest=10**9, reports=0)
VERSIONS: Final = (MODERN, OLDER, "2025-06-18", "2025-03-26", "2024-11-05", None)


class EchoRequest(ToolRequest):
    """What to say."""

    said: Annotated[Text, Field(description="Hexadecimal of UTF-8, so that any character may come.")]
    fails: Annotated[Text | None, Field(description="`refused` or `unforeseen`.")] = None


class Echo(ToolResponse):
    """What was said."""

    text: Annotated[str, Field(description="The text.")]
    words: Annotated[tuple[str, ...] | None, Field(description="Its words.")]
    length: Annotated[int, Field(description="Of the text.")]
    empty: Annotated[bool, Field(description="Whether there is none.")]


async def _echo(request: EchoRequest, _: ToolContext) -> Echo:
    text = bytes.fromhex(request.said).decode()
    if request.fails == "refused":
        raise InvalidInputError(text, [FieldError("said", text)])
    return Echo(text=text, words=tuple(text.split()) or None, length=len(text), empty=not text)


ECHO: Final = Tool(
    name="echo",
    title="Echo",
    description="Says it again.",
    request=EchoRequest,
    response=Echo,
    token=TokenRule.OPTIONAL,
    run=_echo,
    examples=(),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to /mcp."""

    headers: Lines
    body: bytes


def dispatcher(folder: Path, *tools: Tool[Any], quota: QuotaClass = MANY, timeout: float = 5.0) -> Dispatcher:
    """Some tools over the four-shop world; a call may take so many seconds."""
    verifier = TokenVerifier(SqliteTokenStore(folder / "tokens"))
    admission = Admission(verifier, MemoryLimiter(), QuotaPolicy(quota))
    live = LiveData(reference_world(folder), timeout)
    return Dispatcher(tools, live, admission, SqliteReports(folder / "reports"), timeout=timeout)


def answered(over: Dispatcher, *asked: Asked) -> tuple[list[tuple[Sent, Sent]], int]:
    """What the fast path and the SDK answer to each, and how many the fast path took."""

    async def all_of_them() -> tuple[list[tuple[Sent, Sent]], int]:
        ways = BothWays(over)
        async with ways.short._sessions.run(), ways.sdk._sessions.run():
            return [await ways.ask(one.headers, one.body) for one in asked], ways.taken

    return asyncio.run(all_of_them())


def plain(version: str | None, tool: str, arguments: Mapping[str, Any], **members: Any) -> Asked:  # noqa: ANN401 - JSON
    """A plain call; `members` replace some of the message's."""
    return Asked(plain_headers(version, tool), raw(plain_message(version, tool, arguments) | members))


def changed(asked: Asked, *lines: tuple[bytes, bytes], without: bytes = b"") -> Asked:
    """A request with some of its headers left out and others added."""
    others = tuple(line for line in asked.headers if line[0] != without)
    return Asked((*others, *lines), asked.body)
