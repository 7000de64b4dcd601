"""What the service asks of a search engine, in the words of the domain.

An answer is whole or it is an error: an engine that timed out, lost a shard or is gone raises, it never returns less
(E3). One snapshot is one generation: nothing of another generation gets into an answer (C2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from index_mappings.documents import Category, Shop
from index_mappings.generations import Stamp
from index_mappings.operations import Operations

# The number of a shop's offers that can be read, newest first: engines find documents up to this position (M8).
REACHED_OFFERS: Final = 100_000


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


@dataclass(slots=True, unsafe_hash=True)  # not frozen: every suggest request makes some
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


@dataclass(slots=True)  # not frozen: every suggest request makes some
class SuggestedShop:
    """What a suggestion shows of a shop.

    Attributes:
        id, name, domain: the shop's.
        category: its first one's slug.
        popularity: the shop's; None where it is not known.
    """

    id: str
    name: str
    domain: str
    category: str
    popularity: float | None


@dataclass(frozen=True, slots=True)
class WordCount:
    """How many shops have any evidence of a word of the query, filters applied (M6).

    Attributes:
        word: spelt as ignored words are.
        shops: their number.
    """

    word: str
    shops: int


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search (M3 to M6).

    Attributes:
        shops: one page, in order.
        total: the full number of matches.
        ignored: words that matched nothing in the corpus, as typed, in query order.
        category_truncated: whether a word resolves to more categories than are taken.
        did_you_mean: up to three shops of which the whole query is a misspelt name, or a name and something else; none
            of them is among the matches.
        word_counts: for each word of a query of several that has no match; None for other queries.
    """

    shops: tuple[Shop, ...]
    total: int
    ignored: tuple[str, ...]
    category_truncated: bool
    did_you_mean: tuple[SuggestedShop, ...]
    word_counts: tuple[WordCount, ...] | None = None


@dataclass(slots=True)  # not frozen: every suggest request makes eight
class Suggestion:
    """A suggested shop.

    Attributes:
        shop: what is shown of it.
        tier: of its best evidence (M9).
        encoded: the suggestion as JSON bytes, cached with it; empty until it was first sent.
    """

    shop: SuggestedShop
    tier: int
    encoded: bytes = field(default=b"", compare=False, repr=False)

    def order(self) -> tuple[int, float, str]:
        """What suggestions are sorted by: the better tier, popularity, the id (M1, M2)."""
        return -self.tier, -(self.shop.popularity or 0.0), self.shop.id


@dataclass(slots=True, unsafe_hash=True)  # not frozen: every suggest request makes some
class Suggested:
    """The answer to a typeahead query (M9, M10)."""

    categories: tuple[Category, ...]
    shops: tuple[Suggestion, ...]


@dataclass(frozen=True, slots=True)
class CouponQuery:
    """Which coupons, asked when and from where.

    Attributes:
        shop: an id or reduced domain; None for the coupons of all shops.
        now_us: the call's one clock reading, microseconds since 1970.
        channel: the door, as display policies name it.
        country: the caller's, where a trusted edge says it; None otherwise.
        most: with more usable coupons than this the list is not read; None reads any number.
    """

    shop: str | None
    now_us: int
    channel: str
    country: str | None
    most: int | None


@dataclass(frozen=True, slots=True)
class Coupons:
    """The balance of coupons (A4).

    Attributes:
        usable: how many may be shown.
        expired, rejected, reserved, policy: how many are withheld, each counted for its first reason.
        views: the usable ones as callers see them, in M11's order; None when there are more than asked for.
    """

    usable: int
    expired: int
    rejected: int
    reserved: int
    policy: int
    views: tuple[Mapping[str, Any], ...] | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a public shop beside its name.

    Attributes:
        shop: its id and domain.
        shipping: the statement as callers see it, with `excluded`; None when none was collected.
        signals: present trust signals as callers see them.
        pipeline_gaps: kinds of signal whose check ran without a usable value.
    """

    shop: Mapping[str, str]
    shipping: Mapping[str, Any] | None
    signals: tuple[Mapping[str, Any], ...]
    pipeline_gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer with what the checkout tools need.

    Attributes:
        id: offer id.
        shop: the shop's id and domain.
        checkout_url: a valid URL, or None.
        affiliate: network, program_id, commission_stated, disclosure and url; None without a programme.
    """

    id: str
    shop: Mapping[str, str]
    checkout_url: str | None
    affiliate: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class MergeEffects:
    """What a merge of two shops would touch.

    Attributes:
        coupons, offers: those of both shops.
        duplicate_codes: coupon codes that both have.
        domain_has_others: whether a third shop, which has no name that both have, is on the registrable domain that
            they share; False where they share no domain or no name.
    """

    coupons: int
    offers: int
    duplicate_codes: int
    domain_has_others: bool


@dataclass(frozen=True, slots=True)
class Generations:
    """What operators are told of generations.

    Attributes:
        live: the stamp of the live one, of whatever schema version: it is for the reader to say that it is another one.
        previous: the stamp of the one that was live before; None when none is kept for a rollback.
        operations: what the indexer tells beside the live one; None when nothing of it is known.
    """

    live: Stamp
    previous: Stamp | None
    operations: Operations | None


@dataclass(frozen=True, slots=True)
class TypeaheadState:
    """Whether suggest requests can be answered.

    Attributes:
        status: `ready`; `opening` until its files are there and checked; `failed` when they could not be opened, which
            is tried again.
        reason: why it is not ready, for operators, without paths and addresses; empty when it is.
    """

    status: Literal["ready", "opening", "failed"]
    reason: str = ""


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

    def suggest(self, query: SuggestQuery) -> Suggested:
        """Suggest shops and categories (M9, M10), from the typeahead in the process.

        Raises:
            BackendUnavailable: the typeahead of this generation is not open.
        """

    async def categories(self) -> tuple[Category, ...]:
        """All categories that a public shop carries, most shops first, then slug (M11)."""

    async def shop(self, reference: str, offers: int = 0, offers_offset: int = 0) -> Shop | None:
        """The shop of an id or a reduced domain (R1), with up to `offers` of its offers; None when there is none.

        Without `offers` it carries the few that every shop of a search carries (A1). Offers before `offers_offset` are
        passed over; the offers from REACHED_OFFERS on are never returned.
        """

    async def shops(self, references: Sequence[str]) -> tuple[Shop | None, ...]:
        """The shops of ids or reduced domains, each as a search returns it, in the order asked (A14).

        A reference that occurs twice is answered twice; None stands for one that names no shop.
        """

    async def coupons(self, query: CouponQuery) -> Coupons | None:
        """The balance of a shop's coupons, or of all; None when there is no such public shop."""

    async def facts(self, reference: str) -> Facts | None:
        """Shipping of a shop; None when there is no such public shop."""

    async def trust(self, reference: str) -> Facts | None:
        """Trust of a shop that has at least one present signal; None for every other reference alike (A8)."""

    async def offer(self, offer_id: str) -> Offer | None:
        """The offer of a public shop; None when there is none."""

    async def merge_candidates(self, shop: Shop, most: int) -> tuple[Shop, ...]:
        """Other shops that share a domain part, a whole name or a redirect with this one, in M1's order."""

    async def merge_effects(self, first: Shop, second: Shop) -> MergeEffects:
        """What a merge of two shops would touch."""


class SearchBackend(Protocol):
    """A search engine that holds generations."""

    async def snapshot(self) -> Snapshot:
        """The live generation, confirmed within the last two seconds (C1).

        Raises:
            BackendUnavailable: the engine does not say what is live, or nothing readable is.
        """

    def current(self) -> Snapshot | None:
        """The live generation where it is available without I/O; else None."""

    def typeahead_state(self) -> TypeaheadState:
        """Whether suggest requests can be answered now."""

    async def refresh(self) -> Snapshot:
        """The live generation, looked up again: for the one retry after GenerationGone (C2)."""

    async def generations(self) -> Generations:
        """The generations, asked now and never kept: for operators, not for answers.

        Raises:
            NothingPublished: there is no live generation yet.
            BackendUnavailable: the engine does not say.
        """

    async def close(self) -> None:
        """Release connections and files."""
