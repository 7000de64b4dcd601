"""The bounds around an endpoint that asks engines and stores: how many at once, and no work for a caller who has left.

A body is waited for outside the gate, in bounded memory: a slow sender takes nobody's place. The request's deadline
begins when the body is there, as how fast a caller sends is not the service's doing.
"""

import asyncio
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import MAX_BODY_BYTES, OverloadedError, ServiceError
from service.http.responses import Answer, problem_answer, requests_in_flight_of
from service.runtime.overload import Gate, Place
from service.runtime.wire import header


class Gated:
    """An ASGI object in front of another one.

    Attributes:
        app: the other one.
    """

    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        timeout: float,
        refused: Callable[[ServiceError], Answer] = problem_answer,
        *,
        interrupted: bool = True,
    ) -> None:
        """Put bounds around an endpoint.

        Args:
            app: the endpoint.
            gate: shared by all that do the same kind of work.
            timeout: seconds that a request may take.
            refused: makes the answer of what is too much.
            interrupted: whether the endpoint may be cancelled when its caller leaves; one that may not stops its own
                work by `RequestContext.left`.
        """
        self.app = app
        self._gate = gate
        self._timeout = timeout
        self._refused = refused
        self._interrupted = interrupted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or say that it is one too many."""
        request = requests_in_flight_of(scope)
        try:
            self._gate.check()
            if scope["method"] == "POST" and not _announced_too_large(scope):
                receive = await _received(receive)
            place = request.place = Place(self._gate)
        except OverloadedError as error:
            request.outcome = error.code
            await self._refused(error).send(send)
            return

        async def send_outside(message: Message) -> None:
            # The work is done: how fast a caller reads is not for the others to wait for.
            place.leave()
            await send(message)

        try:
            request.deadline = time.monotonic() + self._timeout
            if self._interrupted and (task := asyncio.current_task()) is not None:
                request.left.append(task.cancel)
            await self.app(scope, receive, send_outside)
        finally:
            place.leave()


def _announced_too_large(scope: Scope) -> bool:
    """Whether the endpoint will refuse the body unread."""
    declared = header(scope["headers"], b"content-length")
    return declared is not None and declared.isdecimal() and int(declared[:20]) > MAX_BODY_BYTES


async def _received(receive: Receive) -> Receive:
    """Wait for the body, or as much of it as shows that it is too long; it is handed out again as it came."""
    messages: list[Message] = []
    size = 0
    while size <= MAX_BODY_BYTES:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            break
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            break
    messages.reverse()

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again
