"""POST /mcp: the transport's own checks first, each refusal in JSON-RPC's shape and our words (R5, E1).

A plain call of a tool is answered here; every other message is the SDK's.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import (
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.types import INVALID_REQUEST
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from service.calls.dispatch import Dispatcher
from service.errors import BodyTooLargeError, InvalidInputError, ServiceError
from service.http.responses import Answer, Headers, http_caller, method_not_allowed, requests_in_flight_of
from service.limits.policy import Bucket
from service.mcp_server.error_rewriting import ErrorRewriter
from service.mcp_server.fast_path import PlainCall, ShortWay
from service.mcp_server.handling import QUOTA, Call, quota_of
from service.mcp_server.messages import MessageId, RpcError, called_tool, check_message, refused_call
from service.mcp_server.spans import CALL, COMPLETE, begin_span
from service.runtime.addresses import Proxies
from service.runtime.caller import Channel
from service.runtime.tracing import UNTRACED, CallTracer
from service.runtime.wire import is_json, read_body

_BAD_REQUEST: Final = 400
_ANY_PORT: Final = ":*"
_ADMIT: Final = "shop_directory.admit"
# What clients send, so that it need not be taken apart each time.
_ACCEPTED: Final = frozenset({b"application/json", b"application/json, text/event-stream", b"*/*"})
_LOG: Final = logging.getLogger(__name__)


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
        traces: CallTracer = UNTRACED,
    ) -> None:
        """Guard a session manager.

        Args:
            sessions: the SDK's; running for as long as requests come.
            dispatcher: says who may call, and how often.
            trusted: the proxies that tell whose call it is.
            allowed_hosts: values of Host that are served; `name:*` is any port or none.
            allowed_origins: values of Origin that are served, alike; a request without Origin is no browser's.
            traces: begin a span for each message.
        """
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._trusted = trusted
        self._hosts = tuple(allowed_hosts)
        self._origins = tuple(allowed_origins)
        self._traces = traces
        self._short = ShortWay(dispatcher.has_tool, sessions.app.server_info_stamp)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            await method_not_allowed(("POST",)).send(send)
            return
        read = self._refusal(scope) or await _read(scope, receive)
        if isinstance(read, Answer):
            await read.send(send)
            return
        body, message = read
        tool = called_tool(message)
        known = tool if tool is not None and self._dispatcher.has_tool(tool) else None
        meta = (message.get("params") or {}).get("_meta")
        begin_span(
            self._traces, requests_in_flight_of(scope), message["method"], known, meta=meta, headers=scope["headers"]
        )
        plain = self._short.read(scope["headers"], message)
        if plain is None and _transport_refuses(scope, message):
            # The SDK says so, in the caller's era; nobody is asked for a token before that (R5).
            await self._sessions.handle_request(scope, _replay(body, receive), ErrorRewriter(scope, send))
            return
        caller = http_caller(scope, Channel.MCP, self._trusted)
        # A caller who types into an argument sends as many requests as on /suggest.
        otherwise = Bucket.SUGGEST if message["method"] == COMPLETE else Bucket.READS
        admit = await self._dispatcher.admit(tool, caller, otherwise=otherwise)
        is_call = message["method"] == CALL
        if isinstance(admit, ServiceError) and (admit.status == HTTPStatus.UNAUTHORIZED or not is_call):
            # A call's other refusals are results, which the SDK sends in the caller's era (E2).
            await _problem(admit, message.get("id")).send(send)
            return
        if plain is not None:
            await self._answer(plain, Call(caller, admit, requests_in_flight_of(scope)), admit.headers, send)
            return
        scope[_ADMIT] = admit
        scope[QUOTA] = admit.headers
        await self._sessions.handle_request(scope, _replay(body, receive), ErrorRewriter(scope, send))

    async def _answer(self, plain: PlainCall, call: Call, headers: Headers, send: Send) -> None:
        """Answer a plain call; nothing is sent to a caller who has left."""
        request = call.request
        if request is not None and (task := asyncio.current_task()) is not None:
            request.on_disconnect.append(task.cancel)

        async def arguments() -> object:
            return plain.arguments

        try:
            outcome = await self._dispatcher.call(plain.tool, arguments, call.caller, call.admit)
            headers = quota_of(outcome)
            body = self._short.result(plain, outcome)
        except Exception:  # noqa: BLE001 - an unforeseen fault becomes the protocol's own error (E5)
            _LOG.exception("request=%s the method failed", call.caller.request_id)
            body = self._short.failure(plain)
        sent = self._short.headers(plain, body, headers)
        await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": sent})
        await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> Answer | None:
        headers = scope["headers"]
        # Of lines that come twice the first one.
        lines = dict(reversed(headers))
        host = lines.get(b"host", b"").decode("latin-1")
        if not host or not _allowed(host, self._hosts):
            return _refused(421, "This server does not answer for the host that the request names.")
        # Every line of it: who reads only one may read another one than the browser meant.
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if not all(_allowed(origin, self._origins) for origin in origins):
            return _refused(403, "Pages of this origin may not call the server.")
        if not is_json(lines.get(b"content-type", b"").decode("latin-1")):
            return _refused(_BAD_REQUEST, "Send the message as JSON, with the header content-type: application/json.")
        if lines.get(b"accept") not in _ACCEPTED and not check_accept_headers(Request(scope))[0]:
            return _refused(406, "The header accept must allow application/json.")
        return None


async def _read(scope: Scope, receive: Receive) -> tuple[bytes, dict[str, Any]] | Answer:
    """The body and the message that it is, or why it can't be read."""
    try:
        body = await read_body(scope["headers"], receive)
        return body, check_message(body)
    except BodyTooLargeError as error:
        return _refused(413, error.detail)
    except InvalidInputError as error:
        return _refused(_BAD_REQUEST, error.detail)
    except RpcError as error:
        return Answer(_BAD_REQUEST, error.body())


def call_over_http(trusted: Proxies) -> Callable[[Any], Call]:
    """Tells whose request over HTTP it is, and whether it was admitted, from the SDK's context."""

    def call(context: Any) -> Call:  # noqa: ANN401 - the SDK's context of a request over HTTP
        scope = context.request.scope
        return Call(http_caller(scope, Channel.MCP, trusted), scope.get(_ADMIT), requests_in_flight_of(scope))

    return call


def _transport_refuses(scope: Scope, message: dict[str, Any]) -> bool:
    """Whether the headers of the per-request era disagree with each other or with the message."""
    headers = Request(scope).headers
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS or "id" not in message:
        return False
    if find_duplicated_routing_header(headers.items()) is not None:
        return True
    return isinstance(classify_inbound_request(message, headers=dict(headers)), InboundLadderRejection)


def refused_early(error: ServiceError) -> Answer:
    """A refusal before the message was read: the transport's own, whoever sent what."""
    return _problem(error, None)


def _problem(error: ServiceError, message_id: MessageId) -> Answer:
    """A refusal before the tool: the problem object in a JSON-RPC error (E2)."""
    body = refused_call(error, message_id).body()
    retry = () if error.retry_after is None else ((b"retry-after", str(error.retry_after).encode()),)
    return Answer(error.status, body, headers=(*error.headers, *retry), outcome=error.code)


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
    """A receive that hands the body out again, then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
