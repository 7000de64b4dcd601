"""The interface of a search engine, which runs plans, and an engine behind a circuit breaker.

Every guarded call is timed, counted and added to the figures of its request. Reading the stamp and searching have
separate circuits: a cluster whose searches all time out may still return the small stamp document, which must not close
the circuit of the searches.
"""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from index_mappings.generations import Stamp
from shop_directory.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import client_span, current
from shop_directory.search.failures import (
    BackendUnavailable,
    EngineBusy,
    GenerationDamaged,
    GenerationGone,
    NotReadable,
)
from shop_directory.search.plan import Clause, Plan
from shop_directory.search.protocol import FacetCounts, Generations, Position

if TYPE_CHECKING:
    # It imports numpy and numba, which takes a second: only a process that opens a typeahead needs them.
    from shop_directory.typeahead.reading.typeahead import Typeahead

# Errors of the generation: the engine itself works.
_GONE: Final = (GenerationGone, GenerationDamaged, NotReadable)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that a plan found: its level, as of `Plan.steps`, and its stored fields."""

    level: int
    stored: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of a field that are counted over a plan's documents, which pass these filters and not the plan's."""

    field: str
    filters: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search for up to `limit` hits from an offset on, and with `total` for the exact number of all hits.

    Documents that meet one of the clauses in `buckets` are counted, each in its first bucket only, and are not hits.
    With `after`, which excludes an offset, only hits behind that position are returned; the total has all of them.
    """

    plan: Plan
    limit: int
    offset: int = 0
    total: bool = False
    buckets: tuple[Clause, ...] = ()
    after: Position | None = None
    facets: tuple[Facet, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of hits, the number of all hits if that was requested, and of documents in each bucket and facet."""

    hits: tuple[Hit, ...]
    total: int | None
    counts: tuple[int, ...] = ()
    facets: tuple[FacetCounts, ...] = ()


class Engine(Protocol):
    """A search engine. Errors as in `Snapshot`."""

    async def live(self) -> Stamp:
        """The stamp of the live generation, read from the engine now."""

    async def generations(self) -> Generations:
        """The live and the previous stamp and the live operations document, read from the engine now."""

    async def search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        """Run searches in the stamp's generation, in one round trip."""

    def scan(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits of a plan with one tier, in batches, as of one point in time."""

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's typeahead, waiting for its files.

        Raises BackendUnavailable if they are unavailable or damaged, GenerationGone if the generation was removed.
        """

    async def close(self) -> None:
        """Release connections and files."""


class GuardedEngine:
    """An engine that is not called while its circuit is open."""

    def __init__(self, engine: Engine, system: str, metrics: Metrics = NO_METRICS) -> None:
        """Guard an engine, and close it with this one; `system` is its name in traces."""
        self._engine = engine
        self._system = system
        self._metrics = metrics
        self._stamp_circuit = CircuitBreaker("stamp", (BackendUnavailable,), metrics)
        self._search_circuit = CircuitBreaker("search", (BackendUnavailable,), metrics)
        # No circuit: there is at most one attempt a second to open, whose failure does not imply that searches fail.
        self.typeahead, self.close = engine.typeahead, engine.close

    async def live(self) -> Stamp:
        with self._call("stamp"):
            return await self._engine.live()

    async def generations(self) -> Generations:
        with self._call("stamp"):
            return await self._engine.generations()

    async def search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
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

    @contextmanager
    def _call(self, operation: str) -> Iterator[None]:
        """One call to the engine; BackendUnavailable while the circuit is open."""
        started = time.perf_counter()
        circuit = self._stamp_circuit if operation == "stamp" else self._search_circuit
        try:
            probing = circuit.begin()
        except CircuitOpen:
            self._metrics.engine_call(operation, "refused", time.perf_counter() - started)
            raise BackendUnavailable("the engine failed less than a second ago and is not called meanwhile") from None
        outcome = "unavailable"
        try:
            with client_span(self._system, operation):
                yield
            outcome = "ok"
            circuit.end(probing=probing, failed=False)
        except Exception as error:
            gone = isinstance(error, _GONE)
            outcome = "refused" if isinstance(error, EngineBusy) else "gone" if gone else outcome
            circuit.end(probing=probing, failed=isinstance(error, BackendUnavailable) and not gone)
            raise
        finally:  # a cancelled call is neither a success nor a failure of the engine
            seconds = time.perf_counter() - started
            self._metrics.engine_call(operation, outcome, seconds)
            if (request := current()) is not None:
                request.engine_calls += 1
                request.engine_seconds += seconds
