"""What every HTTP answer has in common, whatever made it: a request id, no-store, nosniff, CORS, and no bare failure.

Plain ASGI, outermost: nothing of an exception passes it but the request id (E5).
"""

import logging
from collections.abc import Iterable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.caller import new_request_id
from service.errors import InternalError
from service.rest.answers import REQUEST_ID, Answer, Headers, problem_answer
from service.wire import header

SUGGEST_PATH: Final = "/suggest"

_EXPOSED: Final = b"x-request-id, x-generation, x-data-as-of, retry-after, ratelimit, ratelimit-policy, etag"
_ALLOWED_HEADERS: Final = (
    b"content-type, accept, if-none-match, x-api-token, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"
)
_PREFLIGHT_SECONDS: Final = b"600"
_LOG: Final = logging.getLogger(__name__)


class FrontDoor:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp, cors_origins: Iterable[str] = ()) -> None:
        """Wrap an application.

        Args:
            app: what answers.
            cors_origins: origins that may read answers other than those of /suggest, which any may (C3).
        """
        self._app = app
        self._origins = frozenset(cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = new_request_id()
        common = ((b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff"))
        cors = self._cors(scope)
        started = False

        async def send_with_common(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": _completed(message["headers"], common + cors)}
            await send(message)

        if cors and _is_preflight(scope):
            await _preflight(scope).send(send_with_common)
            return
        try:
            await self._app(scope, receive, send_with_common)
        except Exception:
            _LOG.exception("request=%s path failed", request_id)
            if started:
                # The caller has a part of an answer: only a broken connection says that it is not whole.
                raise
            await problem_answer(InternalError()).send(send_with_common)

    def _cors(self, scope: Scope) -> Headers:
        if scope["path"] == SUGGEST_PATH:
            return (b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", _EXPOSED)
        if not self._origins:
            return ()
        origin = header(scope["headers"], b"origin")
        if origin not in self._origins:
            return ()
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"origin"),
        )


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and header(scope["headers"], b"access-control-request-method") is not None


def _preflight(scope: Scope) -> Answer:
    methods = b"GET, HEAD" if scope["path"] == SUGGEST_PATH else b"GET, HEAD, POST"
    headers = (
        (b"access-control-allow-methods", methods),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    )
    return Answer(204, b"", None, headers)


def _completed(headers: Iterable[tuple[bytes, bytes]], common: Headers) -> list[tuple[bytes, bytes]]:
    """The headers with the common ones; cache-control is no-store unless the endpoint says otherwise (C1)."""
    completed = [*headers, *common]
    if all(name.lower() != b"cache-control" for name, _ in completed):
        completed.append((b"cache-control", b"no-store"))
    return completed
