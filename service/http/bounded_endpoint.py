"""Bounds around an endpoint that uses engines and stores: concurrency, a deadline, and cancellation on disconnect.

The body is received before the request takes a slot at the gate, in bounded memory, so a slow sender occupies no slot.
The deadline starts when the body is complete, because the client decides how fast it sends.
"""

import asyncio
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import MAX_BODY_BYTES, OverloadedError, ServiceError
from service.http.responses import Answer, problem_answer, request_context_of
from service.runtime.overload import Gate, GateSlot
from service.runtime.wire import declares_too_large


class BoundedEndpoint:
    """An ASGI application in front of an endpoint.

    Attributes:
        app: the endpoint.
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
            gate: bounds the concurrent requests of all endpoints that share it.
            timeout: seconds that a request may take.
            refused: makes the answer to a request beyond the bound.
            interrupted: whether the endpoint is cancelled when its caller disconnects. If not, it must stop its own
                work by `RequestContext.on_disconnect`.
        """
        self.app = app
        self._gate = gate
        self._timeout = timeout
        self._refused = refused
        self._interrupted = interrupted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it as one too many."""
        request = request_context_of(scope)
        try:
            self._gate.check()
            if scope["method"] == "POST" and not declares_too_large(scope["headers"]):
                receive = await _receive_body(receive)
            slot = request.slot = GateSlot(self._gate)
        except OverloadedError as error:
            request.outcome = error.code
            await self._refused(error).send(send)
            return

        async def send_outside(message: Message) -> None:
            # The work is done: a client that reads slowly must not occupy the slot.
            slot.leave()
            await send(message)

        try:
            request.deadline = time.monotonic() + self._timeout
            if self._interrupted and (task := asyncio.current_task()) is not None:
                request.on_disconnect.append(task.cancel)
            await self.app(scope, receive, send_outside)
        finally:
            slot.leave()


async def _receive_body(receive: Receive) -> Receive:
    """Receive the body, or as much of it as exceeds the limit, and return a callable that replays the messages."""
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

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
