"""One call of a tool, the same for every door: look up, read, validate, run, log (R5).

The order is R5's: the tool's name counts before its caller, the caller before the body, the body before the fields.
That is why the arguments are handed in unread. Nothing of what went wrong inside gets out but by the request id (E5).
"""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index_mappings.generations import Stamp
from service.caller import Caller
from service.context import ToolContext
from service.errors import InternalError, RouteNotFoundError, ServiceError
from service.live import Answered, LiveData
from service.search.protocol import Snapshot
from service.tools.request import validated
from service.tools.tool import Tool, ToolResponse
from service.wire import encode

Arguments = Callable[[], Awaitable[object]]

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to.

    Attributes:
        request_id: the caller's.
        document: the answer, or the problem object.
        body: the document's bytes.
        stamp: of the data that the answer, or the refusal, comes from; None when no data was asked (C2).
        error: why there is no answer; None when there is one.
    """

    request_id: str
    document: dict[str, Any]
    body: bytes
    stamp: Stamp | None
    error: ServiceError | None


class Dispatcher:
    """Runs the tools of a registry on live data."""

    def __init__(self, registry: Sequence[Tool[Any]], live: LiveData) -> None:
        self.tools = tuple(registry)
        self._by_name = {tool.name: tool for tool in registry}
        self._live = live

    def knows(self, name: str) -> bool:
        """Whether there is such a tool."""
        return name in self._by_name

    async def call(self, name: str, arguments: Arguments, caller: Caller) -> Outcome:
        """Call a tool.

        Args:
            name: of the tool.
            arguments: reads them; raises ServiceError when they can't be read. Asked only when the call may go on.
            caller: whose call it is.

        Returns:
            The answer or the error; nothing is raised but cancellation.
        """
        started = time.perf_counter()
        answered = await self._answer(name, arguments, caller)
        outcome = _outcome(caller, answered)
        _LOG.info(
            "request=%s channel=%s tool=%s outcome=%s ms=%.1f",
            caller.request_id,
            caller.channel,
            name if self.knows(name) else "-",
            outcome.error.code if outcome.error else "ok",
            (time.perf_counter() - started) * 1000,
        )
        return outcome

    async def _answer(self, name: str, arguments: Arguments, caller: Caller) -> Answered[ToolResponse]:
        tool = self._by_name.get(name)
        if tool is None:
            return Answered(None, RouteNotFoundError())
        try:
            request = validated(tool.request, await arguments())

            async def work(snapshot: Snapshot) -> ToolResponse:
                return await tool.run(request, self._context(snapshot, caller))

            return await self._live.ask(work, caller.request_id)
        except ServiceError as error:
            return Answered(None, error)
        except Exception:  # noqa: BLE001 - the one place where an unforeseen fault becomes an answer (E5)
            _LOG.exception("request=%s tool=%s failed", caller.request_id, name)
            return Answered(None, InternalError())


def _outcome(caller: Caller, answered: Answered[ToolResponse]) -> Outcome:
    result = answered.result
    if isinstance(result, ServiceError):
        document, error = result.problem(), result
    else:
        document, error = result.as_wire(), None
    return Outcome(caller.request_id, document, encode(document), answered.stamp, error)
