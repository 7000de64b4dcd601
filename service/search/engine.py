"""What a search engine must be able to do, so that the rules of matching stand over all of them at once."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from index_mappings.generations import Stamp
from service.search.clauses import Clause
from service.search.plan import Plan
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
class Ask:
    """One search of several that go to the engine together.

    Attributes:
        plan: what to look for.
        limit: hits to return.
        offset: hits to pass over.
        total: whether the exact number of hits is wanted.
        sorts: documents that meet one of these are counted, each for the first one, and are no hits.
    """

    plan: Plan
    limit: int
    offset: int = 0
    total: bool = False
    sorts: tuple[Clause, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of hits.

    Attributes:
        hits: in order.
        total: how many there are in all; None when that was not asked.
        counts: how many documents are of each sort that was asked for.
    """

    hits: tuple[Hit, ...]
    total: int | None
    counts: tuple[int, ...] = ()


class Engine(Protocol):
    """What a search engine must be able to do. Errors as in `Snapshot`."""

    async def live(self) -> Stamp:
        """The stamp of the live generation, asked now."""

    async def generations(self) -> Generations:
        """The live and the previous stamp, and the operations document: one generation's, asked now."""

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        """Run searches in the stamp's generation, in one round trip."""

    def every(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits of a plan of one tier, however many, as of one moment."""

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's typeahead, waiting for its files.

        Raises:
            BackendUnavailable: its files cannot be had, or are damaged.
            GenerationGone: the generation was removed meanwhile.
        """

    async def close(self) -> None:
        """Release connections and files."""
