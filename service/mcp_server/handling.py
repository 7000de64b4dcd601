"""What all handlers share: the caller, the span, the log line, and cancellation when the caller leaves (E2, E5)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from anyio import CancelScope
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR

from index_mappings.generations import Stamp
from service.calls.admission import Admitted
from service.calls.dispatch import AdmissionResult, Dispatcher
from service.errors import ServiceError
from service.limits.policy import Bucket
from service.limits.protocol import Headers
from service.mcp_server.messages import METHODS, TEXTS, RpcError, refused_call
from service.runtime.caller import Caller
from service.runtime.request_context import (
    LEFT,
    RequestContext,
    bind_request,
    current,
    new_request_context,
)
from service.runtime.telemetry import NO_METRICS, NO_ROUTE, REFUSED, log_call
from service.runtime.tracing import CallTracer, header_texts

T = TypeVar("T")

# The key of a call in its request's scope.
CALL: Final = "shop_directory.mcp_call"


@dataclass(slots=True)
class Call:
    """A call as the transport received it.

    `admit` is None if the transport has not asked for it; `request` is None over stdio, where each call gets one of its
    own. `quota` are the headers of its answer.
    """

    caller: Caller
    admit: AdmissionResult | None = None
    request: RequestContext | None = None
    quota: Headers = ()


Context = ServerRequestContext[Any, Any]
CallFactory = Callable[[Context], Call]


class OwnError(MCPError):
    """An error with our code, text and data, in contrast to those that the SDK raises."""

    @classmethod
    def of(cls, error: RpcError) -> "OwnError":
        """Our refusal as an exception that the SDK handles."""
        return cls(code=error.code, message=error.message, data=error.data)


def refusal(error: ServiceError) -> OwnError:
    """A refusal before the work; its code becomes the request's outcome."""
    set_outcome(error.code)
    return OwnError.of(refused_call(error))


def set_outcome(outcome: str) -> None:
    """Set the outcome of the current request."""
    if (request := current()) is not None:
        request.outcome = outcome


def set_refused(request: RequestContext) -> None:
    """Set the outcome of a request to a refusal, unless it has a more specific one."""
    if request.outcome is None:
        request.outcome = REFUSED


def result_meta(request_id: str, stamp: Stamp | None) -> dict[str, Any]:
    """A result's `_meta`: the request's id, and which data the answer comes from (C2)."""
    meta = {"x-request-id": request_id}
    return meta if stamp is None else meta | {"x-generation": stamp.generation, "x-data-as-of": stamp.built_at}


def begin_span(
    traces: CallTracer,
    request: RequestContext,
    method: str,
    tool: str | None,
    *,
    meta: object,
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    """Begin the span of a message; `tool` is None if it calls no existing tool.

    The trace in `meta`, the `_meta` of the params, takes precedence over one in the headers.
    """
    # Unknown methods share one name, so that callers cannot create span names.
    method = method if method in METHODS else "other"
    attributes = {"mcp.method.name": method} | ({} if tool is None else {"gen_ai.tool.name": tool})

    def carried() -> dict[str, Any]:
        return header_texts(headers) | (dict(meta) if isinstance(meta, Mapping) else {})

    traces.begin(request, method if tool is None else f"{method} {tool}", carried, attributes)


class RequestRunner:
    """Runs the work of a message in the context of its request."""

    def __init__(self, dispatcher: Dispatcher, make_call: CallFactory, traces: CallTracer | None = None) -> None:
        """Set up the runner; `traces` begins the span of a call whose transport does not, None begins none."""
        self.dispatcher = dispatcher
        self._make_call = make_call
        self._traces = traces

    async def run(self, context: Context, work: Callable[[Call], Awaitable[T]], *, tool: str | None = None) -> T:
        """Run the work of a message, which calls the tool named `tool`, if any.

        Raises OwnError as the work raised it, or because the caller has left.
        """
        call = self._make_call(context)
        # The SDK's task outlives the request's, so it must be cancelled when the caller leaves.
        with (
            CancelScope() as scope,
            bind_request(
                call.request or new_request_context(call.caller.request_id, self.dispatcher.timeout)
            ) as request,
        ):
            request.on_disconnect.append(scope.cancel)
            if call.request is None and self._traces is not None:
                begin_span(self._traces, request, context.method, tool, meta=context.meta)
            try:
                result = await work(call)
            except OwnError:
                set_refused(request)
                _log_call(call, request)
                raise
            _log_call(call, request)
            return result
        request.outcome = LEFT
        raise OwnError(code=INTERNAL_ERROR, message=TEXTS[INTERNAL_ERROR])

    async def admit(self, call: Call, bucket: Bucket = Bucket.READS) -> Admitted:
        """The admission of a request that calls no tool, the transport's or a new one; OwnError if it is refused."""
        admit = call.admit
        if admit is None:
            admit = await self.dispatcher.admit(None, call.caller, otherwise=bucket)
        if isinstance(admit, ServiceError):
            raise refusal(admit)
        return admit


def _log_call(call: Call, request: RequestContext) -> None:
    """Log and count a call, unless its transport does."""
    if call.request is None:
        log_call(NO_METRICS, request, channel=call.caller.channel.value, route=NO_ROUTE)
