"""An engine behind a circuit breaker: every call is timed, counted and charged to the request that it is made for.

Reading the stamp and searching have a circuit each: with a cluster whose searches all run out of time, the small stamp
document may well be there, and must not close the circuit of the searches.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Final

from index_mappings.generations import Stamp
from service.runtime.circuit_breaker import Circuit, CircuitOpen
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import current
from service.runtime.tracing import client_span
from service.search.engine import Ask, Engine, Hit, Page
from service.search.failures import BackendUnavailable, GenerationDamaged, GenerationGone, NotReadable
from service.search.plan import Plan
from service.search.protocol import Generations

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

# Answers of an engine that works: the generation is at fault.
_GONE: Final = (GenerationGone, GenerationDamaged, NotReadable)


class GuardedEngine:
    """An engine that is not asked while it fails."""

    def __init__(self, engine: Engine, system: str, metrics: Metrics = NOTHING_MEASURED) -> None:
        """Guard an engine; it belongs to this one.

        Args:
            engine: what is asked.
            system: its name in traces.
            metrics: are told of every call.
        """
        self._engine = engine
        self._system = system
        self._metrics = metrics
        self._stamp = Circuit("stamp", (BackendUnavailable,), metrics)
        self._searches = Circuit("search", (BackendUnavailable,), metrics)

    async def live(self) -> Stamp:
        """The stamp of the live generation, asked now."""
        with self._asked("stamp"):
            return await self._engine.live()

    async def generations(self) -> Generations:
        """What operators are told of generations."""
        with self._asked("stamp"):
            return await self._engine.generations()

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        """Run searches in one round trip."""
        with self._asked("search"):
            return await self._engine.search(stamp, asks)

    async def every(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits of a plan, page by page, each a call of its own."""
        async with aclosing(self._engine.every(stamp, plan)) as pages:
            while True:
                with self._asked("every"):
                    page = await anext(pages, None)
                if page is None:
                    return
                yield page

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's typeahead.

        No circuit takes part: this is one attempt a second at most, and its failure says nothing of searches.
        """
        return await self._engine.typeahead(stamp)

    async def close(self) -> None:
        """Release the engine."""
        await self._engine.close()

    def _asked(self, operation: str) -> "_Asked":
        """One call to the engine, as a context; BackendUnavailable where it is left alone just now."""
        circuit = self._stamp if operation == "stamp" else self._searches
        return _Asked(operation, circuit, self._system, self._metrics)


class _Asked:
    """One call: refused by an open circuit, traced, timed, counted, and charged to the current request."""

    __slots__ = ("_began", "_circuit", "_metrics", "_operation", "_probing", "_span", "_system")

    def __init__(self, operation: str, circuit: Circuit, system: str, metrics: Metrics) -> None:
        self._operation = operation
        self._circuit = circuit
        self._system = system
        self._metrics = metrics

    def __enter__(self) -> None:
        self._began = time.perf_counter()
        try:
            self._probing = self._circuit.begin()
        except CircuitOpen:
            self._metrics.engine_call(self._operation, "refused", time.perf_counter() - self._began)
            raise BackendUnavailable("the engine failed just now and is left alone for a second") from None
        self._span = client_span(self._system, self._operation)
        self._span.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._span.__exit__(kind, error, traceback)
        gone = isinstance(error, _GONE)
        # What was cancelled says nothing of the engine.
        if error is None or isinstance(error, Exception):
            self._circuit.end(probing=self._probing, failed=isinstance(error, BackendUnavailable) and not gone)
        seconds = time.perf_counter() - self._began
        outcome = "ok" if error is None else "gone" if gone else "unavailable"
        self._metrics.engine_call(self._operation, outcome, seconds)
        if (request := current()) is not None:
            request.engine_calls += 1
            request.engine_seconds += seconds
