"""POST /mcp: checks of the transport, whose refusals are JSON-RPC errors with our texts, then the message (R5, E1).

A call of a tool that is plain in every header and every field is answered here, without the SDK's session, streams and
tasks; every other message goes to the SDK, whose error answers are replaced by ours (E5). The `_meta` of a plain call
is validated by the SDK's models, once for each distinct value: a client sends the same one every time.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson
from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.types import (
    DEFAULT_NEGOTIATED_VERSION,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    CallToolRequestParams,
)
from mcp.types.methods import validate_client_request
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from service.calls.dispatch import Dispatcher, Outcome
from service.errors import ServiceError
from service.http.messages import (
    BODY,
    JSON,
    Answer,
    TokenReader,
    api_token,
    header,
    http_caller,
    is_json,
    method_not_allowed,
    request_context_of,
)
from service.limits.policy import Bucket
from service.mcp_server.json_rpc import refused_early
from service.mcp_server.messages import (
    CALL,
    COMPLETION_COMPLETE,
    TEXTS,
    TOOLS_CALL,
    McpCall,
    RpcError,
    begin_span,
    called_tool,
    check_message,
    own_answer,
    result_meta,
)
from service.runtime.caller import Channel, Proxies
from service.runtime.tracing import CallTracer

_VERSION: Final = MCP_PROTOCOL_VERSION_HEADER.encode()
_METHOD: Final = MCP_METHOD_HEADER.encode()
_NAME: Final = MCP_NAME_HEADER.encode()
# The SDK judges any header of the protocol that is not one of the three above.
_PROTOCOL_PREFIX: Final = b"mcp-"
_MODERN_HEADERS: Final = 3
_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "arguments", "_meta"})
_LARGEST_ID: Final = 2**53
# They differ with each request.
_PER_REQUEST: Final = frozenset({"progressToken", "traceparent", "tracestate"})
_MAX_CACHED: Final = 256
_MAX_BYTES: Final = 2_048
_BAD_REQUEST: Final = 400
_ANY_PORT: Final = ":*"
_WRONG_HOST: Final = (
    "This server does not answer for the host that the request names. The operator adds a host to "
    "SHOP_DIRECTORY_MCP_ALLOWED_HOSTS."
)
_WRONG_ORIGIN: Final = (
    "Pages of this origin may not call the server. The operator allows an origin by SHOP_DIRECTORY_MCP_ALLOWED_ORIGINS."
)
# The usual values of Accept, which need no parsing.
_USUAL_ACCEPT: Final = frozenset({b"application/json", b"application/json, text/event-stream", b"*/*"})
_ANY_ACCEPT: Final = (b"accept", b"*/*")
_EVENTS: Final = (b"content-type", b"text/event-stream")
_LOG: Final = logging.getLogger(__name__)


class PlainCall(NamedTuple):
    """A call that needs nothing of the SDK; `modern` is a protocol version without a handshake (since 2026-07-28)."""

    message_id: int | str
    tool: str
    arguments: dict[str, Any]
    modern: bool


def read_plain(
    has_tool: Callable[[str], bool], headers: list[tuple[bytes, bytes]], message: dict[str, Any]
) -> PlainCall | None:
    """Read a message, as `check_message` returned it, as a plain call; None if the SDK must handle it."""
    params = message.get("params")
    if message["method"] != TOOLS_CALL or message.keys() != _MEMBERS or not isinstance(params, dict):
        return None
    tool, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta")
    if not (params.keys() <= _PARAMS and isinstance(tool, str) and has_tool(tool)):
        return None
    if not isinstance(arguments, dict | None) or not _is_plain_id(message["id"]):
        return None
    version = _plain_version(dict(headers), len(headers), tool)
    if version is None:
        return None
    modern = version in MODERN_PROTOCOL_VERSIONS
    if modern and (not isinstance(meta, dict) or meta.get(PROTOCOL_VERSION_META_KEY) != version):
        return None
    if meta is not None and not (isinstance(meta, dict) and accepts(version, meta)):
        return None
    return PlainCall(message["id"], tool, arguments or {}, modern)


def _plain_version(lines: dict[bytes, bytes], received: int, tool: str) -> str | None:
    """The protocol's version by the headers; None if one of them is repeated or not plain."""
    if len(lines) != received:
        return None
    media_type = lines.get(b"content-type", b"")
    if media_type != JSON and not media_type.startswith(JSON + b";"):
        return None
    protocol = [name for name in lines if name.startswith(_PROTOCOL_PREFIX)]
    if not protocol:
        return DEFAULT_NEGOTIATED_VERSION
    version = lines.get(_VERSION, b"").decode("latin-1")
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return version if len(protocol) == 1 else None
    if version not in MODERN_PROTOCOL_VERSIONS or len(protocol) != _MODERN_HEADERS:
        return None
    return version if lines.get(_METHOD) == TOOLS_CALL.encode() and lines.get(_NAME) == tool.encode() else None


def _is_plain_id(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, int) and -_LARGEST_ID <= value <= _LARGEST_ID


def accepts(version: str, meta: Mapping[str, Any]) -> bool:
    """Whether the SDK certainly accepts a call with this `_meta` in a version; False if it is too long to cache."""
    constant = meta
    if not _PER_REQUEST.isdisjoint(meta):
        if not all(_is_plain(meta.get(name, "")) for name in _PER_REQUEST):
            return False
        constant = {name: value for name, value in meta.items() if name not in _PER_REQUEST}
    try:
        key = orjson.dumps(constant)
    except orjson.JSONEncodeError:
        return False
    return len(key) <= _MAX_BYTES and is_valid(version, key)


def _is_plain(value: object) -> bool:
    """Whether the models accept the value as a progress token, and ignore it in a trace."""
    return isinstance(value, str | int) and not isinstance(value, bool)


@lru_cache(_MAX_CACHED)
def is_valid(version: str, meta: bytes) -> bool:
    """Whether the SDK's models accept the JSON of a `_meta`, cached in bounded memory."""
    params = {"name": "any", "_meta": orjson.loads(meta)}
    try:
        validate_client_request(TOOLS_CALL, version, params)
        CallToolRequestParams.model_validate(params, by_name=False)
    except ValidationError:
        return False
    return True


class McpEndpoint:
    """An ASGI object in front of the SDK's session manager."""

    def __init__(
        self,
        sessions: StreamableHTTPSessionManager,
        dispatcher: Dispatcher,
        trusted: Proxies,
        allowed_hosts: Iterable[str],
        allowed_origins: Iterable[str],
        *,
        traces: CallTracer | None = None,
        token_of: TokenReader = api_token,
        explain: Callable[[ServiceError], ServiceError] = lambda error: error,
    ) -> None:
        """`sessions`, the SDK's session manager, must run while there are requests.

        Of the accepted values of Host and Origin `name:*` is any port or none; a request without Origin is accepted.
        `traces` begins a span for each message. `token_of` reads the token from the headers, and `explain` makes the
        error of a call that lacks a valid one, which says how to send it.
        """
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._trusted = trusted
        self._hosts = tuple(allowed_hosts)
        self._origins = tuple(allowed_origins)
        self._traces = traces
        self._token_of = token_of
        self._explain = explain
        self._read_plain = partial(read_plain, dispatcher.has_tool)
        # In each result of the modern versions.
        self._server_info = {SERVER_INFO_META_KEY: dict(sessions.app.server_info_stamp)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            await method_not_allowed(("POST",)).send(send)
            return
        accepts_json, accepts_events = _accepted(scope)
        if accepts_events and not accepts_json:
            send = _as_event(send)
        read = self._refusal(scope, accepted=accepts_json or accepts_events) or _read(scope[BODY])
        if isinstance(read, Answer):
            await read.send(send)
            return
        body, message = read
        tool = called_tool(message)
        if self._traces is not None:
            known = tool if tool is not None and self._dispatcher.has_tool(tool) else None
            meta = (message.get("params") or {}).get("_meta")
            begin_span(
                self._traces, request_context_of(scope), message["method"], known, meta=meta, headers=scope["headers"]
            )
        plain = self._read_plain(scope["headers"], message)
        if plain is None and _transport_refuses(scope, message):
            # The SDK refuses it, in the caller's protocol version; this comes before the token is checked (R5).
            await self._sessions.handle_request(_for_sdk(scope), _replay(body, receive), ErrorRewriter(None, send))
            return
        caller = http_caller(scope, Channel.MCP, self._trusted, self._token_of)
        # A caller who types into an argument sends as many requests as with /suggest.
        otherwise = Bucket.SUGGEST if message["method"] == COMPLETION_COMPLETE else Bucket.READS
        admit = await self._dispatcher.admit(tool, caller, otherwise=otherwise)
        if isinstance(admit, ServiceError):
            refused = admit.status == HTTPStatus.UNAUTHORIZED
            # A call's other refusals are results (E2).
            if refused or message["method"] != TOOLS_CALL:
                await refused_early(self._explain(admit) if refused else admit, message.get("id")).send(send)
                return
        call = McpCall(caller, admit, request_context_of(scope), admit.headers)
        if plain is not None:
            await self._answer(plain, call, send)
            return
        scope[CALL] = call
        await self._sessions.handle_request(_for_sdk(scope), _replay(body, receive), ErrorRewriter(call, send))

    async def _answer(self, plain: PlainCall, call: McpCall, send: Send) -> None:
        """Answer a plain call; nothing is sent to a caller who has left."""
        if call.request is not None and (task := asyncio.current_task()) is not None:
            call.request.on_disconnect.append(task.cancel)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": plain.message_id}
        try:
            outcome = await self._dispatcher.call(plain.tool, plain.arguments, call.caller, call.admit)
            call.quota = outcome.quota
            body = orjson.dumps({**answer, "result": self._result(plain, outcome)})
        except Exception:  # noqa: BLE001 - an unforeseen fault becomes the protocol's own error; only the log has the cause (E5)
            _LOG.exception("request=%s the method failed", call.caller.request_id)
            body = orjson.dumps({**answer, "error": {"code": INTERNAL_ERROR, "message": TEXTS[INTERNAL_ERROR]}})
        await Answer(HTTPStatus.OK, body, headers=call.quota).send(send)

    def _result(self, plain: PlainCall, outcome: Outcome) -> dict[str, Any]:
        """The result of a call: the text is REST's body; an error has no structured content (E2)."""
        failed = outcome.error is not None
        meta = result_meta(outcome.request_id, outcome.stamp)
        result: dict[str, Any] = {
            "_meta": meta | self._server_info if plain.modern else meta,
            "content": [{"text": outcome.body.decode(), "type": "text"}],
            "isError": failed,
        }
        if plain.modern:
            result["resultType"] = "complete"
        if not failed:
            result["structuredContent"] = orjson.Fragment(outcome.body)
        return result

    def _refusal(self, scope: Scope, *, accepted: bool) -> Answer | None:
        headers = scope["headers"]
        # The first line of a repeated header.
        lines = dict(reversed(headers))
        host = lines.get(b"host", b"").decode("latin-1")
        if not host or not _allowed(host, self._hosts):
            return _refused(421, _WRONG_HOST)
        # All Origin lines must be allowed: it is unknown which of them the browser meant.
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if not all(_allowed(origin, self._origins) for origin in origins):
            return _refused(403, _WRONG_ORIGIN)
        if not is_json(lines.get(b"content-type", b"").decode("latin-1")):
            return _refused(_BAD_REQUEST, "Send the message as JSON, with the header content-type: application/json.")
        if not accepted:
            return _refused(406, "The header accept must allow application/json or text/event-stream.")
        return None


def _accepted(scope: Scope) -> tuple[bool, bool]:
    """Whether the caller accepts JSON, and whether it accepts events; without Accept it accepts both."""
    accept = [value for name, value in scope["headers"] if name == b"accept"]
    if len(accept) == 1 and accept[0] in _USUAL_ACCEPT:
        return True, True
    if not accept:
        return True, True
    joined = {**scope, "headers": [(b"accept", b", ".join(accept))]}
    return check_accept_headers(Request(joined))


def _for_sdk(scope: Scope) -> Scope:
    """The request as the SDK serves it, which refuses one without Accept, and one that accepts events alone."""
    if check_accept_headers(Request(scope))[0]:
        return scope
    return {**scope, "headers": [*(line for line in scope["headers"] if line[0] != b"accept"), _ANY_ACCEPT]}


def _as_event(send: Send) -> Send:
    """An ASGI send for callers that accept events alone: a JSON answer with status 200 is sent as one event."""
    head: Message = {}
    body = bytearray()

    async def send_event(message: Message) -> None:
        nonlocal head
        if message["type"] == "http.response.start":
            head = message
            if not _is_result(head):
                await send(head)
        elif not _is_result(head):
            await send(message)
        else:
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                event = b"event: message\ndata: %b\n\n" % bytes(body)
                content = (_EVENTS, (b"content-length", b"%d" % len(event)))
                names = {name for name, _ in content}
                headers = [line for line in head["headers"] if line[0].lower() not in names]
                await send({**head, "headers": [*headers, *content]})
                await send({"type": "http.response.body", "body": event})

    return send_event


def _is_result(head: Message) -> bool:
    return head["status"] == HTTPStatus.OK and is_json(header(head["headers"], b"content-type"))


def _read(body: bytes | ServiceError) -> tuple[bytes, dict[str, Any]] | Answer:
    """The body with its message, or the refusal if it can't be read."""
    if isinstance(body, ServiceError):
        return _refused(body.status, body.detail)
    try:
        return body, check_message(body)
    except RpcError as error:
        return Answer(_BAD_REQUEST, error.body())


def call_over_http(context: Any) -> McpCall:  # noqa: ANN401 - the SDK's context of a request over HTTP
    """The call that the endpoint has admitted."""
    call: McpCall = context.request.scope[CALL]
    return call


def _transport_refuses(scope: Scope, message: dict[str, Any]) -> bool:
    """Whether the headers of a modern version disagree with each other or with the message."""
    headers = Request(scope).headers
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS or "id" not in message:
        return False
    if find_duplicated_routing_header(headers.items()) is not None:
        return True
    return isinstance(classify_inbound_request(message, headers=dict(headers)), InboundLadderRejection)


def _refused(status: int, text: str) -> Answer:
    return Answer(status, RpcError(INVALID_REQUEST, text).body())


def _allowed(value: str, patterns: Iterable[str]) -> bool:
    value = value.lower()
    for pattern in patterns:
        if not pattern.endswith(_ANY_PORT):
            if value == pattern:
                return True
            continue
        rest = value.removeprefix(pattern.removesuffix(_ANY_PORT))
        if rest != value and (rest == "" or (rest[0] == ":" and rest[1:].isdecimal())):
            return True
    return False


def _replay(body: bytes, receive: Receive) -> Receive:
    """An ASGI receive that returns the body that was read, then the messages after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


class ErrorRewriter:
    """An ASGI send that passes the SDK's answers on, with the quota of the call, and replaces its errors by ours."""

    def __init__(self, call: McpCall | None, send: Send) -> None:
        self._call = call
        self._send = send
        self._status = 0
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer; an error is sent when it is complete."""
        # Read late: the call may have been charged more since it was admitted.
        quota = () if self._call is None else self._call.quota
        if message["type"] == "http.response.start":
            self._status = message["status"]
            if self._status < _BAD_REQUEST:
                await self._send({**message, "headers": [*message["headers"], *quota]})
        elif self._status < _BAD_REQUEST:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await Answer(self._status, own_answer(bytes(self._body)), headers=quota).send(self._send)
