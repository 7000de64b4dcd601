"""HTTP answers as values, and the ASGI objects that send them. Errors are RFC 9457 problem documents (E1)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from index_mappings.generations import Stamp
from service.errors import MethodNotAllowedError, ServiceError
from service.runtime.caller import new_request_id
from service.runtime.request_context import RequestContext, begun, current
from service.runtime.wire import JSON, encode

PROBLEM_JSON: Final = b"application/problem+json"
UNDER_WAY: Final = "shop_directory.under_way"

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back.

    Attributes:
        status: of HTTP.
        body: the bytes.
        media_type: of the body; None without one.
        headers: beside content-type and content-length.
        outcome: the code of a problem, as the log and the measures name it; None leaves it to the status.
    """

    status: int
    body: bytes
    media_type: bytes | None = JSON
    headers: Headers = ()
    outcome: str | None = None

    async def send(self, send: Send, *, head_only: bool = False) -> None:
        """Send it."""
        if self.outcome is not None and (request := current()) is not None:
            request.outcome = self.outcome
        headers = list(self.headers)
        if self.media_type is not None:
            headers += [(b"content-type", self.media_type), (b"content-length", str(len(self.body)).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head_only else self.body})


@dataclass(frozen=True, slots=True)
class Asked:
    """An HTTP request as an endpoint sees it."""

    scope: Scope
    receive: Receive
    request_id: str

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """As received, names in lower case."""
        found: list[tuple[bytes, bytes]] = self.scope["headers"]
        return found


class Endpoint:
    """An ASGI object for one path: a method check, and an answer."""

    def __init__(self, methods: tuple[str, ...], answer: Callable[[Asked], Awaitable[Answer]]) -> None:
        self._methods = methods
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] not in self._methods:
            await method_not_allowed(self._methods).send(send)
            return
        answer = await self._answer(Asked(scope, receive, request_id_of(scope)))
        await answer.send(send, head_only=scope["method"] == "HEAD")


def requests_in_flight_of(scope: Scope) -> RequestContext:
    """What the door wrote down of the request."""
    request: RequestContext | None = scope.get(UNDER_WAY)
    if request is None:
        request = scope[UNDER_WAY] = begun(new_request_id())
    return request


def request_id_of(scope: Scope) -> str:
    """The id that the request was given at the door."""
    return requests_in_flight_of(scope).request_id


def json_answer(document: dict[str, Any], headers: Headers = ()) -> Answer:
    """A 200."""
    return Answer(200, encode(document), JSON, headers)


def problem_answer(error: ServiceError, headers: Headers = (), body: bytes | None = None) -> Answer:
    """An error; `body` when it has been encoded already."""
    headers = (*headers, *error.headers)
    if error.retry_after is not None:
        headers = (*headers, (b"retry-after", str(error.retry_after).encode()))
    return Answer(error.status, encode(error.problem()) if body is None else body, PROBLEM_JSON, headers, error.code)


def method_not_allowed(methods: tuple[str, ...]) -> Answer:
    """405 with the methods that there are."""
    return problem_answer(MethodNotAllowedError(), ((b"allow", ", ".join(methods).encode()),))


def stamp_headers(stamp: Stamp | None) -> Headers:
    """Which data an answer comes from (C2)."""
    if stamp is None:
        return ()
    return (b"x-generation", stamp.generation.encode()), (b"x-data-as-of", stamp.built_at.encode())
