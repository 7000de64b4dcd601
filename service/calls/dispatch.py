"""One call of a tool, the same for every door: look up, read, validate, run (R5).

The order is R5's: the tool's name counts before its caller, the caller before the body, the body before the fields.
That is why the arguments are handed in unread. Nothing of what went wrong inside gets out but by the request id (E5).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from index_mappings.generations import Stamp
from service.calls.admission import Admission, Admitted
from service.calls.live_data import Answered, LiveData
from service.errors import (
    BackendUnavailableError,
    InternalError,
    QuotaExceededError,
    RouteNotFoundError,
    ServiceError,
)
from service.limits.headers import Headers
from service.limits.policy import Bucket, tool_bucket
from service.reports.protocol import ReportQueue
from service.runtime.caller import Caller, Channel
from service.runtime.request_context import begun, bind_request, current, time_left
from service.runtime.wire import encode
from service.search.protocol import Snapshot
from service.tools.request import validated
from service.tools.tool import TokenRule, Tool, ToolAnswer, ToolContext

Arguments = Callable[[], Awaitable[object]]

_TIMEOUT: Final = 1.8
_NOT_ADMITTED: Final = "The call could not be admitted in time; try again in 1 second."
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is the same for every call.

    Attributes:
        reports: where reports go.
        most_coupons: how many coupons the listing of all shops hands out, by door; a door that is not there has no
            such bound (A6).
    """

    reports: ReportQueue
    most_coupons: Mapping[Channel, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to.

    Attributes:
        request_id: the caller's.
        document: the answer, or the problem object.
        body: the document's bytes.
        stamp: of the data that the answer, or the refusal, comes from; None when no data was asked (C2).
        error: why there is no answer; None when there is one.
        headers: what HTTP answers say of the quota, beside the headers of an error.
    """

    request_id: str
    document: dict[str, Any]
    body: bytes
    stamp: Stamp | None
    error: ServiceError | None
    headers: Headers


Admit = Admitted | ServiceError


class Dispatcher:
    """Runs the tools of a registry on live data."""

    def __init__(
        self,
        registry: Sequence[Tool[Any]],
        live: LiveData,
        admission: Admission,
        surroundings: Surroundings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        timeout: float = _TIMEOUT,
    ) -> None:
        """Take the tools and what they work with.

        Args:
            registry: the tools.
            live: the data.
            admission: who may call, and how often.
            surroundings: what is the same for every call.
            clock: read once a call.
            timeout: seconds that a call may take that comes by no door with a deadline of its own.
        """
        self.tools = tuple(registry)
        self._by_name = {tool.name: tool for tool in registry}
        self._live = live
        self._admission = admission
        self._surroundings = surroundings
        self._clock = clock
        self._timeout = timeout

    def knows(self, name: str) -> bool:
        """Whether there is such a tool."""
        return name in self._by_name

    async def admit(self, name: str | None, caller: Caller, *, otherwise: Bucket = Bucket.READS) -> Admit:
        """Apply the token rule and the quota of a tool, or of what is no tool's call.

        Args:
            name: of the tool; None, or what no tool is called, for what is no tool's call.
            caller: whose call it is.
            otherwise: what that is counted as.

        Returns:
            The admission, or why there is none; nothing is raised but cancellation.
        """
        tool = self._by_name.get(name) if name is not None else None
        if tool is not None and (request := current()) is not None:
            # Here, so that what is refused is told of by the name of its tool too.
            request.tool = tool.name
        bucket = otherwise if tool is None else tool_bucket(read_only=tool.effects.read_only)
        required = tool is not None and tool.token is TokenRule.REQUIRED
        try:
            if caller.token is None and not required:
                headers = self._admission.admit_at_once(caller.address, bucket)
                if headers is not None:
                    return Admitted(None, headers)
            async with asyncio.timeout(time_left(self._timeout)):
                return await self._admission.admit(caller, bucket, token_required=required)
        except TimeoutError:
            return BackendUnavailableError(_NOT_ADMITTED)
        except ServiceError as error:
            return error
        except Exception:  # noqa: BLE001 - an unforeseen fault of a store becomes an answer (E5)
            _LOG.exception("request=%s the call could not be admitted", caller.request_id)
            return InternalError()

    async def call(self, name: str, arguments: Arguments, caller: Caller, admit: Admit | None = None) -> Outcome:
        """Call a tool.

        Args:
            name: of the tool.
            arguments: reads them; raises ServiceError when they can't be read. Asked only when the call may go on.
            caller: whose call it is.
            admit: what `admit` said, where the door had to ask before.

        Returns:
            The answer or the error; nothing is raised but cancellation.
        """
        if current() is not None:
            return await self._called(name, arguments, caller, admit)
        with bind_request(begun(caller.request_id, self._timeout)):
            return await self._called(name, arguments, caller, admit)

    async def _called(self, name: str, arguments: Arguments, caller: Caller, admit: Admit | None) -> Outcome:
        if name not in self._by_name:
            admit = RouteNotFoundError()
        elif admit is None:
            admit = await self.admit(name, caller)
        if isinstance(admit, Admitted):
            outcome = await self._answer(self._by_name[name], arguments, caller, admit)
        else:
            # What it says of the quota is with the error already.
            outcome = _outcome(caller, Answered(None, admit), ())
        if (request := current()) is not None:
            request.outcome = outcome.error.code if outcome.error else "ok"
        return outcome

    async def _answer(self, tool: Tool[Any], arguments: Arguments, caller: Caller, admitted: Admitted) -> Outcome:
        headers = admitted.headers
        try:
            request = validated(tool.request, await arguments())
            if units := tool.extra_cost(request):
                headers = await self._charge(tool, units, caller, admitted)
            now = self._clock()

            async def work(snapshot: Snapshot) -> ToolAnswer:
                return await tool.run(request, self._context(snapshot, caller, admitted, now))

            answered = await self._live.ask(work, caller.request_id)
        except QuotaExceededError as error:
            # Its own headers say what is left since.
            return _outcome(caller, Answered(None, error), ())
        except ServiceError as error:
            answered = Answered(None, error)
        except Exception:  # noqa: BLE001 - the one place where an unforeseen fault becomes an answer (E5)
            _LOG.exception("request=%s tool=%s failed", caller.request_id, tool.name)
            answered = Answered(None, InternalError())
        return _outcome(caller, answered, headers)

    async def _charge(self, tool: Tool[Any], units: int, caller: Caller, admitted: Admitted) -> Headers:
        """Count what a call costs beyond the unit that admission took."""
        bucket = tool_bucket(read_only=tool.effects.read_only)
        try:
            async with asyncio.timeout(time_left(self._timeout)):
                return await self._admission.charge(caller, admitted.token, bucket, units)
        except TimeoutError:
            raise BackendUnavailableError(_NOT_ADMITTED) from None

    def _context(self, snapshot: Snapshot, caller: Caller, admitted: Admitted, now: datetime) -> ToolContext:
        return ToolContext(
            search=snapshot,
            now=now,
            channel=caller.channel.value,
            country=caller.country,
            most_coupons=self._surroundings.most_coupons.get(caller.channel),
            reports=self._surroundings.reports,
            source=None if admitted.token is None else admitted.token.id,
        )


def _outcome(caller: Caller, answered: Answered[ToolAnswer], headers: Headers) -> Outcome:
    result = answered.result
    if isinstance(result, ServiceError):
        document, error = result.problem(), result
    else:
        document, error = result.as_wire(), None
    return Outcome(caller.request_id, document, encode(document), answered.stamp, error, headers)
