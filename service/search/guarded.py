"""An engine behind a circuit breaker: every call is timed, counted and charged to the request that it is made for.

Reading the stamp and searching have a circuit each: with a cluster whose searches all run out of time, the small stamp
document may well be there, and must not close the circuit of the searches.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

from index_mappings.generations import Stamp
from service.breaker import Circuit, CircuitOpen
from service.measures import NOTHING_MEASURED, Measures
from service.search.clauses import Clause
from service.search.engine import Ask, Engine, Hit, Page
from service.search.failures import BackendUnavailable, GenerationGone, NotReadable
from service.search.plan import Plan
from service.search.protocol import Generations
from service.tracing import asking
from service.under_way import current

T = TypeVar("T")

_GONE: Final = (GenerationGone, NotReadable)


class _Failed(Exception):  # noqa: N818 - it carries a failure through the circuit and is never seen outside
    """The engine is at fault, not the generation that was asked."""

    def __init__(self, failure: BackendUnavailable) -> None:
        super().__init__()
        self.failure = failure


class GuardedEngine:
    """An engine that is not asked while it fails."""

    def __init__(self, engine: Engine, system: str, measures: Measures = NOTHING_MEASURED) -> None:
        """Guard an engine; it belongs to this one.

        Args:
            engine: what is asked.
            system: its name in traces.
            measures: are told of every call.
        """
        self._engine = engine
        self.at_once = engine.at_once
        self._system = system
        self._measures = measures
        self._stamp = Circuit("stamp", (_Failed,), measures)
        self._searches = Circuit("search", (_Failed,), measures)

    async def live(self) -> Stamp:
        """The stamp of the live generation, asked now."""
        return await self._asked("stamp", self._stamp, self._engine.live)

    async def generations(self) -> Generations:
        """What operators are told of generations."""
        return await self._asked("stamp", self._stamp, self._engine.generations)

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        """Run searches in one round trip."""
        return await self._asked("search", self._searches, lambda: self._engine.search(stamp, asks))

    async def every(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits of a plan, page by page, each a call of its own."""
        async with aclosing(self._engine.every(stamp, plan)) as pages:
            while (page := await self._asked("every", self._searches, lambda: anext(pages, None))) is not None:
                yield page

    async def present(self, stamp: Stamp, kind: str, clauses: Sequence[Clause]) -> tuple[bool, ...]:
        """For each clause whether any document meets it."""
        return await self._asked("present", self._searches, lambda: self._engine.present(stamp, kind, clauses))

    async def close(self) -> None:
        """Release the engine."""
        await self._engine.close()

    async def _asked(self, operation: str, circuit: Circuit, ask: Callable[[], Awaitable[T]]) -> T:
        began, outcome = time.perf_counter(), "unavailable"

        async def ask_engine() -> T:
            try:
                return await ask()
            except _GONE:
                raise
            except BackendUnavailable as error:
                raise _Failed(error) from error

        try:
            with asking(self._system, operation):
                result = await circuit.call(ask_engine)
            outcome = "ok"
        except CircuitOpen:
            outcome = "refused"
            raise BackendUnavailable("the engine failed just now and is left alone for a second") from None
        except _GONE:
            outcome = "gone"
            raise
        except _Failed as failed:
            raise failed.failure from failed.failure.__cause__
        finally:
            self._tell(operation, outcome, time.perf_counter() - began)
        return result

    def _tell(self, operation: str, outcome: str, seconds: float) -> None:
        self._measures.engine_call(operation, outcome, seconds)
        if outcome != "refused" and (request := current()) is not None:
            request.engine_calls += 1
            request.engine_seconds += seconds
