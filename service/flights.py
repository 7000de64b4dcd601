"""Single flight: callers who want the same thing at the same time share one look-up, and its failure.

It goes on as long as anybody waits for it: one who leaves takes nothing from the others, and the last one ends it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.under_way import UnderWay, begun, current, working_on

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Flight(Generic[T]):
    task: "asyncio.Task[T]"
    request: UnderWay
    waiting: int = 0


class Flights(Generic[T]):
    """Look-ups under way, by what they look for."""

    def __init__(self, timeout: float) -> None:
        """Begin with none.

        Args:
            timeout: seconds that a look-up may take; whoever joins it late waits no longer than his own request may.
        """
        self._timeout = timeout
        self._flying: dict[Hashable, _Flight[T]] = {}

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` finds, or what the same look-up finds that is under way.

        Args:
            key: what is looked for.
            work: the look-up; its engine calls are told as those of the request that began it.

        Raises:
            Exception: what the work raises.
        """
        flight = self._flying.get(key)
        mine = flight is None
        if flight is None:
            flight = self._begin(key, work)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if mine and (request := current()) is not None:
                request.engine_calls += flight.request.engine_calls
                request.engine_seconds += flight.request.engine_seconds
            if not flight.waiting and not flight.task.done():
                self._forget(key, flight)
                flight.request.caller_left()
                flight.task.cancel()

    def _begin(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> _Flight[T]:
        first = current()
        # Of its own: the first caller's deadline and departure are not those of the others.
        request = begun(first.request_id if first is not None else "", self._timeout)
        request.tracer = first.tracer if first is not None else None

        async def fly() -> T:
            return await work()

        with working_on(request):
            flight = _Flight(asyncio.create_task(fly()), request)
        self._flying[key] = flight
        flight.task.add_done_callback(lambda task: self._landed(key, flight, task))
        return flight

    def _landed(self, key: Hashable, flight: _Flight[T], task: "asyncio.Task[T]") -> None:
        self._forget(key, flight)
        if not task.cancelled():
            # Whoever waited has been told; where nobody did, nobody is to hear of it later.
            task.exception()

    def _forget(self, key: Hashable, flight: _Flight[T]) -> None:
        if self._flying.get(key) is flight:
            del self._flying[key]
