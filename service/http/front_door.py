"""What every HTTP answer has in common, whatever made it: a request id, no-store, CORS, security headers.

Plain ASGI, outermost: nothing of an exception passes it but the request id (E5).
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InternalError
from service.http.responses import Answer, Headers, problem_answer, requests_in_flight_of
from service.http.security_headers import completed, security_headers
from service.runtime.draining import Draining
from service.runtime.request_context import LEFT, bind_request
from service.runtime.wire import header

SUGGEST_PATH: Final = "/suggest"

_EXPOSED: Final = b"x-request-id, x-generation, x-data-as-of, retry-after, ratelimit, ratelimit-policy, etag"
_ALLOWED_HEADERS: Final = (
    b"content-type, accept, if-none-match, x-api-token, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"
)
_OPEN_TO_ANY: Final[Headers] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", _EXPOSED),
)
_PREFLIGHT_SECONDS: Final = b"600"
NO_STORE: Final = (b"cache-control", b"no-store")
_VARY: Final = (b"vary", b"origin")
_NONE: Final[Mapping[str, ASGIApp]] = MappingProxyType({})
_LOG: Final = logging.getLogger(__name__)


class FrontDoor:
    """Wraps the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        cors_origins: Iterable[str] = (),
        draining: Draining | None = None,
        hsts_seconds: int = 0,
        straight: Mapping[str, ASGIApp] = _NONE,
    ) -> None:
        """Wrap an application.

        Args:
            app: what answers.
            cors_origins: origins that may read answers other than those of /suggest, which any may (C3).
            draining: says when the process is on its way out; then each answer is its connection's last.
            hsts_seconds: for how long browsers shall come by TLS only; 0 says nothing of it.
            straight: what answers these paths instead; between the door and it the application would do nothing but
                look for it, which costs more than the rest of the way.
        """
        self._app = app
        self._straight = straight
        self._origins = frozenset(cors_origins)
        # Where an endpoint says nothing else, nobody keeps its answer (C1).
        self._private = (*security_headers(hsts_seconds), NO_STORE)
        self._public = (*security_headers(hsts_seconds, any_origin=True), NO_STORE)
        self._draining = draining or Draining()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = requests_in_flight_of(scope)
        request_id = request.request_id
        common: Headers = ((b"x-request-id", request_id.encode()),)
        if self._draining.begun:
            common += ((b"connection", b"close"),)
        cors = self._cors(scope)
        defaults = self._public if scope["path"] == SUGGEST_PATH else self._private
        started = False

        async def send_with_common(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": completed((*message["headers"], *common, *cors), defaults)}
            await send(message)

        if _allows(cors) and _is_preflight(scope):
            await _preflight(scope).send(send_with_common)
            return
        try:
            with bind_request(request):
                await self._straight.get(scope["path"], self._app)(scope, receive, send_with_common)
        except asyncio.CancelledError:
            if not request.gone:
                raise
            # Its caller has left: there is nobody to be told anything.
            request.outcome = LEFT
        except Exception:
            _LOG.exception("request=%s path failed", request_id)
            if started:
                # The caller has a part of an answer: only a broken connection says that it is not whole.
                raise
            await problem_answer(InternalError()).send(send_with_common)

    def _cors(self, scope: Scope) -> Headers:
        if scope["path"] == SUGGEST_PATH:
            return _OPEN_TO_ANY
        if not self._origins:
            return ()
        origin = header(scope["headers"], b"origin")
        if origin not in self._origins:
            # Another origin is told something else: no cache may take the one answer for the other.
            return (_VARY,)
        # Credentials are never allowed: no cookie means anything here, and a page sends a token only on purpose.
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED),
            _VARY,
        )


def suggest_headers(hsts_seconds: int) -> Headers:
    """What every answer of /suggest carries beside what its endpoint says."""
    return (*_OPEN_TO_ANY, *security_headers(hsts_seconds, any_origin=True))


def _allows(cors: Headers) -> bool:
    return any(name == b"access-control-allow-origin" for name, _ in cors)


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
