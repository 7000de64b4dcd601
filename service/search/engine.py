"""The interface of a search engine: it runs plans, independently of the rules of matching."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from index_mappings.generations import Stamp
from service.search.plan import Clause, Plan
from service.search.protocol import Generations

if TYPE_CHECKING:
    # It imports numpy and numba, which takes a second: only a process that opens a typeahead needs them.
    from service.search.typeahead.typeahead import Typeahead


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that a plan found: its tier and its stored fields."""

    tier: int
    stored: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search; several can be sent to the engine together.

    Attributes:
        plan: what to find.
        limit: the maximum number of hits.
        offset: the number of hits to skip.
        total: whether the exact number of hits is requested.
        buckets: documents that meet one of these clauses are counted, each in its first bucket only, and are no hits.
    """

    plan: Plan
    limit: int
    offset: int = 0
    total: bool = False
    buckets: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of hits.

    Attributes:
        hits: in order.
        total: the number of all hits; None when it was not requested.
        counts: the number of documents in each requested bucket.
    """

    hits: tuple[Hit, ...]
    total: int | None
    counts: tuple[int, ...] = ()


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

        Raises:
            BackendUnavailable: its files are unavailable or damaged.
            GenerationGone: the generation was removed meanwhile.
        """

    async def close(self) -> None:
        """Release connections and files."""
