"""An engine behind a circuit breaker: every call is timed, counted and added to the figures of its request.

Reading the stamp and searching have separate circuits: a cluster whose searches all time out may still return the small
stamp document, which must not close the circuit of the searches.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Final

from index_mappings.generations import Stamp
from service.errors import OverloadedError
from service.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from service.runtime.request_context import client_span, current
from service.runtime.telemetry import NO_METRICS, Metrics
from service.search.engine import Engine, Hit, Page, SearchRequest
from service.search.failures import BackendUnavailable, GenerationDamaged, GenerationGone, NotReadable
from service.search.plan import Plan
from service.search.protocol import Generations

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

# Errors of the generation: the engine itself works.
_GONE: Final = (GenerationGone, GenerationDamaged, NotReadable)


class GuardedEngine:
    """An engine that is not called while its circuit is open."""

    def __init__(self, engine: Engine, system: str, metrics: Metrics = NO_METRICS) -> None:
        """Guard an engine, and close it with this one; `system` is its name in traces."""
        self._engine = engine
        self._system = system
        self._metrics = metrics
        self._stamp_circuit = CircuitBreaker("stamp", (BackendUnavailable,), metrics)
        self._search_circuit = CircuitBreaker("search", (BackendUnavailable,), metrics)

    async def live(self) -> Stamp:
        """The stamp of the live generation, read now."""
        with self._call("stamp"):
            return await self._engine.live()

    async def generations(self) -> Generations:
        """The generations as operators see them."""
        with self._call("stamp"):
            return await self._engine.generations()

    async def search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        """Run searches in one round trip."""
        with self._call("search"):
            return await self._engine.search(stamp, requests)

    async def scan(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits of a plan in batches; each batch is one call."""
        async with aclosing(self._engine.scan(stamp, plan)) as batches:
            while True:
                with self._call("every"):
                    batch = await anext(batches, None)
                if batch is None:
                    return
                yield batch

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's typeahead.

        It has no circuit: there is at most one attempt a second, whose failure does not imply that searches fail.
        """
        return await self._engine.typeahead(stamp)

    async def close(self) -> None:
        """Release the engine."""
        await self._engine.close()

    def _call(self, operation: str) -> "_EngineCall":
        """The context of one call to the engine; entering it raises BackendUnavailable while the circuit is open."""
        circuit = self._stamp_circuit if operation == "stamp" else self._search_circuit
        return _EngineCall(operation, circuit, self._system, self._metrics)


class _EngineCall:
    """One call: refused by an open circuit, or else traced, timed, counted and added to the current request."""

    __slots__ = ("_circuit", "_metrics", "_operation", "_probing", "_span", "_started", "_system")

    def __init__(self, operation: str, circuit: CircuitBreaker, system: str, metrics: Metrics) -> None:
        self._operation = operation
        self._circuit = circuit
        self._system = system
        self._metrics = metrics

    def __enter__(self) -> None:
        self._started = time.perf_counter()
        try:
            self._probing = self._circuit.begin()
        except CircuitOpen:
            self._metrics.engine_call(self._operation, "refused", time.perf_counter() - self._started)
            raise BackendUnavailable("the engine failed less than a second ago and is not called meanwhile") from None
        self._span = client_span(self._system, self._operation)
        self._span.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._span.__exit__(kind, error, traceback)
        gone = isinstance(error, _GONE)
        # A cancelled call is neither a success nor a failure of the engine.
        if error is None or isinstance(error, Exception):
            self._circuit.end(probing=self._probing, failed=isinstance(error, BackendUnavailable) and not gone)
        seconds = time.perf_counter() - self._started
        refused = isinstance(error, OverloadedError)
        outcome = "ok" if error is None else "refused" if refused else "gone" if gone else "unavailable"
        self._metrics.engine_call(self._operation, outcome, seconds)
        if (request := current()) is not None:
            request.engine_calls += 1
            request.engine_seconds += seconds
