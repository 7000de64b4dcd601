"""What a search engine must be able to do, so that the rules of matching stand over all of them at once."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from index_mappings.forms import QueryForms
from index_mappings.generations import Stamp
from service.search.clauses import Clause
from service.search.plan import Plan
from service.search.protocol import Generations, SuggestedShop, Suggestion


@dataclass(slots=True)  # not frozen: a key press makes some
class Hit:
    """A document that a plan found: its tier and its stored fields."""

    tier: int
    stored: dict[str, Any]


@dataclass(slots=True, unsafe_hash=True)  # not frozen: a key press makes some
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


@dataclass(slots=True, unsafe_hash=True)  # not frozen: a key press makes some
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


@dataclass(slots=True)  # not frozen: a key press makes one
class Press:
    """What a key press asks for (M9).

    Attributes:
        forms: the query.
        country: an upper-case ISO code, or None.
        limit: shops to return.
        slugs: gives the categories that each word means; asked only where it matters.
    """

    forms: QueryForms
    country: str | None
    limit: int
    slugs: Callable[[], dict[str, tuple[str, ...]]]


class KeyPresses(Protocol):
    """What only an engine in the process can do: answer a key press before anybody else has a turn."""

    def suggest(self, stamp: Stamp, press: Press) -> tuple[Suggestion, ...]:
        """The best shops, at most as many as are asked for. Errors as in `Snapshot`."""


class Engine(Protocol):
    """What a search engine must be able to do. Errors as in `Snapshot`."""

    @property
    def key_presses(self) -> KeyPresses | None:
        """Its part that answers key presses at once; None where each search is waited for."""

    async def live(self) -> Stamp:
        """The stamp of the live generation, asked now."""

    async def generations(self) -> Generations:
        """The live and the previous stamp, and the operations document: one generation's, asked now."""

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        """Run searches in the stamp's generation, in one round trip."""

    def every(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits of a plan of one tier, however many, as of one moment."""

    async def present(self, stamp: Stamp, kind: str, clauses: Sequence[Clause]) -> tuple[bool, ...]:
        """For each clause whether any document meets it."""

    async def close(self) -> None:
        """Release connections and files."""


def shown_of(stored: dict[str, Any]) -> SuggestedShop:
    """What a suggestion shows of a stored shop."""
    category: str = stored["categories"][0]
    return SuggestedShop(stored["id"], stored["name"], stored["domain"], category, stored["popularity"])
