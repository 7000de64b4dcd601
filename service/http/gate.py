"""The bounds around endpoints: on requests at the same time, on the time of one, and on its body.

Requests beyond the bound are refused early and cheaply; otherwise all would wait for each other, until each had waited
longer than its deadline. The body is received before the request takes a slot, in bounded memory, and the deadline
starts when it is complete, because the client decides how fast it sends.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from service.errors import OverloadedError, ServiceError
from service.http.messages import BODY, Answer, problem_answer, read_body, request_context_of
from shop_directory.runtime.metrics import NO_METRICS, Metrics

# Requests that wait for stores do no work, but all of them continue together when the stores answer.
_WAITING_PER_SLOT: Final = 4


class Gate:
    """The slots for requests in flight; all are free at first."""

    def __init__(self, slots: int, metrics: Metrics = NO_METRICS) -> None:
        self._slots = slots
        self._metrics = metrics
        self.in_flight = 0
        self._suspended = 0
        self._in_tick = 0

    def admits_in_tick(self) -> bool:
        """Count a request that is answered within this event-loop tick; whether it may cause work.

        The requests of one tick have waited together, although they are answered one by one. So together with those in
        flight, they are bounded by the number of slots.
        """
        if not self._in_tick:
            asyncio.get_running_loop().call_soon(self._end_tick)
        self._in_tick += 1
        return self.in_flight + self._in_tick <= self._slots

    def _end_tick(self) -> None:
        self._in_tick = 0

    def check(self) -> None:
        """Raise OverloadedError if no slot is free, without taking one."""
        if self.in_flight >= self._slots:
            raise OverloadedError

    def enter(self) -> None:
        """Take a slot, until `leave`; raises OverloadedError if none is free."""
        self.check()
        self.in_flight += 1
        self._metrics.in_flight(1)

    def leave(self) -> None:
        """Return a slot."""
        self.in_flight -= 1
        self._metrics.in_flight(-1)

    def suspend(self) -> bool:
        """Return a slot for a while, until `resume`; False where too many have done so already."""
        if self._suspended >= _WAITING_PER_SLOT * self._slots:
            return False
        self._suspended += 1
        self.leave()
        return True

    def resume(self) -> None:
        """Take a slot again after `suspend`, even if none is free: a request in flight is not refused."""
        self._suspended -= 1
        self.in_flight += 1
        self._metrics.in_flight(1)


class GateSlot:
    """The slot of one request."""

    __slots__ = ("_gate", "_held", "_left")

    def __init__(self, gate: Gate) -> None:
        gate.enter()
        self._gate = gate
        self._held = True
        self._left = False

    def leave(self) -> None:
        """Return the slot for good; idempotent."""
        self._left = True
        if self._held:
            self._held = False
            self._gate.leave()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Within, other requests may use the slot, as this one only waits."""
        if not self._held or not self._gate.suspend():
            yield
            return
        self._held = False
        try:
            yield
        finally:
            self._gate.resume()
            self._held = True
            if self._left:
                self.leave()


class BoundedEndpoint:
    """Bounds around an endpoint, which is its `app`: concurrency, a deadline, and cancellation on disconnect."""

    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        timeout: float,
        refused: Callable[[ServiceError], Answer] = problem_answer,
        *,
        interrupted: bool = True,
    ) -> None:
        """`refused` makes the answer to a request beyond the bound of the gate.

        An endpoint that is not `interrupted` when its caller disconnects must stop its own work by
        `RequestContext.on_disconnect`.
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
            if scope["method"] == "POST":
                scope[BODY] = await read_body(scope["headers"], receive)
            slot = GateSlot(self._gate)
        except OverloadedError as error:
            request.outcome = error.code
            await self._refused(error).send(send)
            return
        # The work is done then: a client that reads slowly must not occupy the slot.
        request.on_answer = slot.leave
        try:
            request.suspended = slot.suspended
            request.deadline = time.monotonic() + self._timeout
            if self._interrupted and (task := asyncio.current_task()) is not None:
                request.on_disconnect.append(task.cancel)
            await self.app(scope, receive, send)
        finally:
            slot.leave()
