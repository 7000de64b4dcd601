"""What the service asks of a search engine, in the words of the domain.

An answer is whole or it is an error: an engine that timed out, lost a shard or is gone raises, it never returns less
(E3). One snapshot is one generation: nothing of another generation gets into an answer (C2).
"""

from dataclasses import dataclass
from typing import Protocol

from index_mappings.documents import Category, Shop
from index_mappings.generations import Stamp


@dataclass(frozen=True, slots=True)
class FindQuery:
    """A search for shops.

    Attributes:
        text: as typed; blank browses.
        country: an upper-case ISO code, or None.
        category: a slug that list_categories returned, or None.
        offset: how many shops to pass over.
        limit: how many to return at most.
    """

    text: str
    country: str | None
    category: str | None
    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search (M3 to M6).

    Attributes:
        shops: one page, in order.
        total: the full number of matches.
        ignored: words that matched nothing in the corpus, as typed, in query order.
        category_truncated: whether a word resolves to more categories than are taken.
        did_you_mean: up to three shops that a typing error away from the whole query, none of them in `shops`.
    """

    shops: tuple[Shop, ...]
    total: int
    ignored: tuple[str, ...]
    category_truncated: bool
    did_you_mean: tuple[Shop, ...]


@dataclass(frozen=True, slots=True)
class SuggestQuery:
    """A typeahead query.

    Attributes:
        text: as typed so far.
        country: an upper-case ISO code, or None.
        limit: how many shops, and how many categories, to return at most.
    """

    text: str
    country: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested shop with the tier of its best evidence (M9)."""

    shop: Shop
    tier: int


@dataclass(frozen=True, slots=True)
class Suggested:
    """The answer to a typeahead query (M9, M10)."""

    categories: tuple[Category, ...]
    shops: tuple[Suggestion, ...]


class Snapshot(Protocol):
    """One generation, as of one stamp.

    Every method raises BackendUnavailable when the engine does not answer wholly and in time, and GenerationGone when
    the generation has been removed meanwhile.
    """

    @property
    def stamp(self) -> Stamp:
        """The stamp that all answers of this snapshot carry."""

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M8)."""

    async def suggest(self, query: SuggestQuery) -> Suggested:
        """Suggest shops and categories (M9, M10)."""

    async def categories(self) -> tuple[Category, ...]:
        """All categories that a public shop carries, most shops first, then slug (M11)."""

    async def shop(self, reference: str) -> Shop | None:
        """The shop of an id or a reduced domain (R1); None when there is no such public shop."""


class SearchBackend(Protocol):
    """A search engine that holds generations."""

    async def snapshot(self) -> Snapshot:
        """The live generation, confirmed within the last two seconds (C1).

        Raises:
            BackendUnavailable: the engine does not say what is live, or nothing readable is.
        """

    async def refresh(self) -> Snapshot:
        """The live generation, asked anew: for the one retry after GenerationGone (C2)."""

    async def close(self) -> None:
        """Release connections and files."""
