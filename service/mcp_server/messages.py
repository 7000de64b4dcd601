"""What all messages share: checks before the SDK reads them, their calls, spans and log lines, and errors (E1, E2, E5).

The SDK's texts quote libraries and values, so every error of the SDK is replaced by one from here.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from anyio import CancelScope
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from index_mappings.generations import Stamp
from index_mappings.strict_json import NotStrictJsonError, strict_loads
from service.calls.admission import Admitted
from service.calls.dispatch import AdmissionResult, Dispatcher
from service.errors import ServiceError
from service.limits.policy import Bucket, QuotaHeaders
from service.mcp_server.json_rpc import REFUSED_CALL, MessageId, error_body
from service.runtime.caller import Caller
from service.runtime.telemetry import NO_ROUTE, REFUSED, log_call
from service.runtime.tracing import CallTracer, header_texts
from shop_directory.runtime.metrics import NO_METRICS
from shop_directory.runtime.request_context import LEFT, RequestContext, bind_request, current, new_request_context

T = TypeVar("T")

TOOLS_CALL: Final = "tools/call"
COMPLETION_COMPLETE: Final = "completion/complete"

# The methods of the protocol that the server knows.
METHODS: Final = frozenset(
    {
        "initialize",
        "notifications/initialized",
        "ping",
        "server/discover",
        TOOLS_CALL,
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        COMPLETION_COMPLETE,
    }
)

TEXTS: Final = {
    PARSE_ERROR: "The message is not valid JSON.",
    INVALID_REQUEST: "The message is not a valid JSON-RPC request.",
    METHOD_NOT_FOUND: "This server does not have that method.",
    INVALID_PARAMS: (
        "The params are not what the method takes. Since 2026-07-28 those of every request hold the protocol version "
        "and the client's capabilities in _meta."
    ),
    INTERNAL_ERROR: "The server failed to answer. The operator finds the cause by the request id.",
    HEADER_MISMATCH: (
        "The headers MCP-Protocol-Version, Mcp-Method and Mcp-Name must be there once each and agree with the message."
    ),
    MISSING_REQUIRED_CLIENT_CAPABILITY: "The request needs a capability that the client does not declare.",
    UNSUPPORTED_PROTOCOL_VERSION: "This protocol version is not served; data.supported lists those that are.",
}
UNKNOWN_TOOL: Final = "There is no tool of this name; tools/list names those that there are."
UNKNOWN_RESOURCE: Final = (
    "There is no resource at this URI. resources/list and resources/templates/list name those that there are; a shop "
    "that is not in the directory is none."
)
UNKNOWN_PROMPT: Final = "There is no prompt of this name; prompts/list names those that there are."
NOTHING_TO_COMPLETE: Final = (
    "There is no such argument to complete: ref names a prompt of prompts/list, or the template of "
    "resources/templates/list as it stands there, and argument.name an argument of it."
)
_OWN_TEXTS: Final = frozenset((*TEXTS.values(), UNKNOWN_TOOL, UNKNOWN_RESOURCE, UNKNOWN_PROMPT, NOTHING_TO_COMPLETE))
# The code for a missing resource in the versions with a handshake; 2026-07-28 has retired it.
_MISSING_RESOURCE: Final = -32_002
_FIRST_FAULT: Final = 500
# The protocol prescribes the data of these errors: clients read the supported versions or capabilities from it.
_WITH_DATA: Final = frozenset({UNSUPPORTED_PROTOCOL_VERSION, MISSING_REQUIRED_CLIENT_CAPABILITY})

# The key of a call in its request's scope.
CALL: Final = "shop_directory.mcp_call"


class RpcError(MCPError):
    """A refusal with a code of JSON-RPC and our text, unlike errors of the SDK; `id` is None if it is not known."""

    def __init__(self, code: int, message: str, message_id: MessageId = None, data: Any = None) -> None:  # noqa: ANN401 - any JSON value
        super().__init__(code, message, data)
        self.id = message_id

    def body(self) -> bytes:
        """The JSON-RPC error object."""
        return error_body(self.code, self.message, self.id, self.data)


def check_message(raw: bytes) -> dict[str, Any]:
    """Read the bytes as one JSON-RPC request or notification; RpcError says why they are none."""
    try:
        message = strict_loads(raw)
    except NotStrictJsonError as error:
        raise RpcError(PARSE_ERROR, f"The message {error}.") from None
    if isinstance(message, list):
        raise RpcError(INVALID_REQUEST, "Batches are not served: send one message a request.")
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "The message must be a JSON object.")
    message_id = message.get("id")
    known_id = message_id if isinstance(message_id, int | str) and not isinstance(message_id, bool) else None
    if fault := _fault(message, known_id):
        raise RpcError(INVALID_REQUEST, f"The message {fault}.", known_id)
    return message


def called_tool(message: dict[str, Any]) -> str | None:
    """The name of the tool that a message calls; None if it calls none."""
    if message["method"] != TOOLS_CALL:
        return None
    name = (message.get("params") or {}).get("name")
    return name if isinstance(name, str) else None


def failed_method(error: ServiceError) -> RpcError:
    """The error of a method other than tools/call: the problem object is its data."""
    code = INVALID_PARAMS if error.status < _FIRST_FAULT else INTERNAL_ERROR
    return RpcError(code, error.detail, data=error.problem())


def missing_resource(version: str) -> RpcError:
    """The error for an unknown resource in the caller's protocol version; it does not repeat the URI (V2)."""
    code = _MISSING_RESOURCE if version in HANDSHAKE_PROTOCOL_VERSIONS else INVALID_PARAMS
    return RpcError(code, UNKNOWN_RESOURCE)


def own_error(code: int, data: Any, message_id: MessageId = None) -> RpcError:  # noqa: ANN401 - any JSON value
    """Our error for one of the SDK: with our text, and without data that the protocol does not prescribe."""
    known = code if code in TEXTS else INTERNAL_ERROR
    return RpcError(known, TEXTS[known], message_id, data if known in _WITH_DATA else None)


def own_answer(body: bytes) -> bytes:
    """An error answer of the SDK with our error instead, also of one that is not JSON-RPC; unchanged if it is ours."""
    try:
        answer = json.loads(body)
        error = answer["error"]
        message, data = error["message"], error.get("data")
        if message in _OWN_TEXTS or (isinstance(data, dict) and data.get("detail") == message):
            return body
        return own_error(error["code"], data, answer.get("id")).body()
    except (ValueError, KeyError, TypeError):
        return own_error(INVALID_REQUEST, None).body()


def _fault(message: dict[str, Any], known_id: MessageId) -> str | None:
    if message.get("jsonrpc") != "2.0":
        return 'must have "jsonrpc": "2.0"'
    if not isinstance(message.get("method"), str):
        return "must have a method, a string: only requests and notifications are accepted"
    if "id" in message and known_id is None:
        return "must have an id that is a string or a whole number, or none for a notification"
    if "result" in message or "error" in message:
        return "must have no result and no error: only requests and notifications are accepted"
    if not isinstance(message.get("params"), dict | None):
        return "must have params that are an object, or none"
    return None


@dataclass(slots=True)
class McpCall:
    """A call as the transport received it.

    `admit` is None if the transport has not asked for it; `request` is None over stdio, where each call gets one of its
    own. `quota` are the headers of its answer.
    """

    caller: Caller
    admit: AdmissionResult | None = None
    request: RequestContext | None = None
    quota: QuotaHeaders = ()


Context = ServerRequestContext[Any, Any]
CallFactory = Callable[[Context], McpCall]


def refusal(error: ServiceError) -> RpcError:
    """A refusal before the work, with the problem object as data (E2); its code becomes the request's outcome."""
    set_outcome(error.code)
    return RpcError(REFUSED_CALL, error.detail, data=error.problem())


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
    sent = header_texts(headers) | (dict(meta) if isinstance(meta, Mapping) else {})
    traces.begin(request, method if tool is None else f"{method} {tool}", sent, attributes)


class RequestRunner:
    """Runs the work of a message in the context of its request."""

    def __init__(self, dispatcher: Dispatcher, make_call: CallFactory, traces: CallTracer | None = None) -> None:
        """Set up the runner; `traces` begins the span of a call whose transport does not, None begins none."""
        self.dispatcher = dispatcher
        self._make_call = make_call
        self._traces = traces

    async def run(self, context: Context, work: Callable[[McpCall], Awaitable[T]], *, tool: str | None = None) -> T:
        """Run the work of a message, which calls the tool named `tool`, if any.

        Raises RpcError as the work raised it, or because the caller has left.
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
            except RpcError:
                set_refused(request)
                _log_call(call, request)
                raise
            _log_call(call, request)
            return result
        request.outcome = LEFT
        raise RpcError(INTERNAL_ERROR, TEXTS[INTERNAL_ERROR])

    async def admit(self, call: McpCall, bucket: Bucket = Bucket.READS) -> Admitted:
        """The admission of a request that calls no tool, the transport's or a new one; RpcError if it is refused."""
        admit = call.admit
        if admit is None:
            admit = await self.dispatcher.admit(None, call.caller, otherwise=bucket)
        if isinstance(admit, ServiceError):
            raise refusal(admit)
        return admit


def _log_call(call: McpCall, request: RequestContext) -> None:
    if call.request is None:
        log_call(NO_METRICS, request, channel=call.caller.channel.value, route=NO_ROUTE)
