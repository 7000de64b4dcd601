"""What each handler does around its own work: whose it is, its span, its end, and a caller who leaves (E2, E5)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from anyio import CancelScope
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR

from index_mappings.generations import Stamp
from service.calls.admission import Admitted
from service.calls.dispatch import Admit, Dispatcher, Outcome
from service.errors import ServiceError
from service.limits.headers import Headers
from service.limits.policy import Bucket
from service.mcp_server.messages import TEXTS, RpcError, refused_call
from service.mcp_server.spans import begin_span
from service.runtime.call_log import NO_ROUTE, REFUSED, call_ended
from service.runtime.caller import Caller
from service.runtime.metrics import NOTHING_MEASURED
from service.runtime.request_context import LEFT, RequestContext, bind_request, current, new_request_context
from service.runtime.tracing import UNTRACED, CallTracer

T = TypeVar("T")

# In a request's scope: its answer is an error of ours, which the door sends as it is.
OWN: Final = "shop_directory.own_error"
# In a request's scope: what the headers of its answer say of the quota.
QUOTA: Final = "shop_directory.quota"

_TIMEOUT: Final = 1.8


@dataclass(frozen=True, slots=True)
class Call:
    """What a door knows of a call.

    Attributes:
        caller: whose it is.
        admit: what the dispatcher said to it, where the door asked already.
        request: what the door wrote down of it; None where the call is all that there is.
    """

    caller: Caller
    admit: Admit | None = None
    request: RequestContext | None = None


Context = ServerRequestContext[Any, Any]
CallOf = Callable[[Context], Call]


class OwnError(MCPError):
    """An error whose code, text and data are ours already."""

    @classmethod
    def of(cls, error: RpcError) -> "OwnError":
        """A refusal of ours as the SDK takes it."""
        return cls(code=error.code, message=error.message, data=error.data)


def refusal(error: ServiceError) -> OwnError:
    """A refusal before the work: the request's outcome is its code."""
    note_outcome(error.code)
    return OwnError.of(refused_call(error))


def note_outcome(outcome: str) -> None:
    """Write down how the request under way ends."""
    if (request := current()) is not None:
        request.outcome = outcome


def refused(request: RequestContext) -> None:
    """Write down that a request ends with an error of ours, where nothing better is known of it."""
    if request.outcome is None:
        request.outcome = REFUSED


def quota_of(outcome: Outcome) -> Headers:
    """What the headers of a call's answer say of the quota; a refusal by the quota says it itself."""
    return outcome.headers if outcome.error is None else (*outcome.headers, *outcome.error.headers)


def told_of(request_id: str, stamp: Stamp | None) -> dict[str, Any]:
    """A result's `_meta`: the request's id, and which data the answer comes from (C2)."""
    told = {"x-request-id": request_id}
    return told if stamp is None else told | {"x-generation": stamp.generation, "x-data-as-of": stamp.built_at}


class Working:
    """Does the work of messages for those who sent them."""

    def __init__(
        self, dispatcher: Dispatcher, call_of: CallOf, timeout: float = _TIMEOUT, traces: CallTracer = UNTRACED
    ) -> None:
        """Make ready.

        Args:
            dispatcher: says who may call.
            call_of: tells whose request it is.
            timeout: seconds that a call may take that comes by no door with a deadline of its own.
            traces: begin a span for such a call.
        """
        self._dispatcher = dispatcher
        self._call_of = call_of
        self._timeout = timeout
        self._traces = traces

    async def on(self, context: Context, work: Callable[[Call], Awaitable[T]], *, tool: str | None = None) -> T:
        """Do some work for whoever sent a message.

        Args:
            context: the SDK's, of the message.
            work: raises OwnError where there is no result.
            tool: that the work calls.
        """
        call = self._call_of(context)
        # The SDK's task outlives the request's: without a word of ours it would work on for a caller who has left.
        with (
            CancelScope() as scope,
            bind_request(call.request or new_request_context(call.caller.request_id, self._timeout)) as request,
        ):
            request.on_disconnect.append(scope.cancel)
            if call.request is None:
                begin_span(self._traces, request, context.method, tool, meta=context.meta)
            try:
                result = await work(call)
            except OwnError:
                refused(request)
                _told(call, request)
                raise
            _told(call, request)
            return result
        request.outcome = LEFT
        raise OwnError(code=INTERNAL_ERROR, message=TEXTS[INTERNAL_ERROR])

    async def admitted(self, call: Call, bucket: Bucket = Bucket.READS) -> Admitted:
        """The admission of what is no tool's call, where the door has not asked for it.

        Raises:
            OwnError: there is none.
        """
        admit = call.admit
        if admit is None:
            admit = await self._dispatcher.admit(None, call.caller, otherwise=bucket)
        if isinstance(admit, ServiceError):
            raise refusal(admit)
        return admit


def _told(call: Call, request: RequestContext) -> None:
    """Tell of a call that came by no door that does."""
    if call.request is None:
        call_ended(NOTHING_MEASURED, request, channel=call.caller.channel.value, route=NO_ROUTE)
