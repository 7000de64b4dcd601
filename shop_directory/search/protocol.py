"""The interface of a search backend: answers are of one generation (C2), and complete or an error (E3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from index_mappings.documents import Category, Shop
from index_mappings.generations import Operations, Stamp
from shop_directory.typeahead.suggestions import SuggestedShop, SuggestQuery, SuggestResult

# A shop's newest offers up to this position can be read: engines return hits up to it (M8).
OFFER_WINDOW: Final = 100_000


@dataclass(frozen=True, slots=True)
class CouponQuery:
    """A query for the coupons of `shops`, by ids or reduced domains; None for those of all shops.

    `now_us` is the time of the call in microseconds since 1970, `country` the caller's as a trusted edge states it. A
    list of more than `list_limit` usable coupons is not read; None reads any number.
    """

    shops: tuple[str, ...] | None
    now_us: int
    channel: str
    country: str | None
    list_limit: int | None


@dataclass(frozen=True, slots=True)
class Coupons:
    """The balance of coupons: how many may be shown, and how many are withheld, counted for their first reason (A4).

    `views` are the usable ones as callers see them, in M11's order; None when there are more than the query's limit.
    """

    usable: int
    expired: int
    rejected: int
    reserved: int
    policy: int
    views: tuple[Mapping[str, Any], ...] | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The collected facts of a public shop: the shipping statement, None when there is none, and present trust signals.

    Both are as callers see them, and so are `policies`: by kind, the statements of countries, and that without one.
    `pipeline_gaps` are kinds of signal whose check ran without a usable value.
    """

    shop: Mapping[str, str]
    shipping: Mapping[str, Any] | None
    policies: Mapping[str, Sequence[Mapping[str, Any]]]
    signals: tuple[Mapping[str, Any], ...]
    pipeline_gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer with the fields that the checkout tools need; the URL is valid or None.

    `affiliate` has network, program_id, commission_stated, disclosure and url; None without a programme.
    """

    id: str
    shop: Mapping[str, str]
    checkout_url: str | None
    affiliate: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class MergeEffects:
    """What a merge of two shops would affect: coupons and offers of both together, and codes that both have.

    `domain_has_others` says that they share a registrable domain and a name, and that a third shop on that domain has
    none of their shared names.
    """

    coupons: int
    offers: int
    duplicate_codes: int
    domain_has_others: bool


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the order of a search, where no shop need be: a level of `Plan.steps`, and M1's sortable key."""

    level: int
    rank: str


@dataclass(frozen=True, slots=True)
class FindQuery:
    """A search for shops by a text as typed, which browses if it is blank.

    Of several upper-case ISO codes, and of several slugs, any is enough; none is no filter. `ships_to` keeps the shops
    that ship there by their statements (F1); with `include_unsettled` also those whose statements do not settle it,
    after all others. `coupons` keeps the shops of which this query lists a coupon that is valid in `ships_to`, else in
    any of the countries, if given; with `verified_code` one that worked in a real checkout (F3). `offset` is 0 with
    `after`, the position after which the page begins. `facets` are kinds of FACET_FIELDS.
    """

    text: str
    countries: tuple[str, ...]
    categories: tuple[str, ...]
    offset: int
    limit: int
    ships_to: str | None = None
    include_unsettled: bool = False
    coupons: CouponQuery | None = None
    verified_code: bool = False
    after: Position | None = None
    facets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WordCount:
    """How many shops have any evidence of a word of the query, which is as typed, filters applied (M6)."""

    word: str
    shops: int


@dataclass(frozen=True, slots=True)
class Broader:
    """A query of fewer words that finds shops: the words left out as typed, and the first shops (M6)."""

    query: str
    left_out: tuple[str, ...]
    total: int
    shops: tuple[SuggestedShop, ...]


@dataclass(frozen=True, slots=True)
class FacetCounts:
    """The numbers of shops by value, and of those without a value."""

    values: Mapping[str, int]
    missing: int


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search (M3 to M6): one page of shops in order, and the full number of matches.

    `ignored` are words without evidence on any shop, as typed, in query order. `category_truncated` says whether a word
    means more categories than the search uses. `did_you_mean` are up to three other shops whose name is misspelt in the
    query, or is a part of it. `word_counts` has each word of a query of several words without a match, and `broader` up
    to three queries with fewer of them; None for other queries.

    `unsettled_count` is the number of matches whose statements do not settle whether they ship to the country, None
    without one; with `include_unsettled` they are in `total` too, and the last `unsettled` of `shops` are among them.
    `last` is the position of the last shop if more follow. `facets` are counts over all matches, without the filter of
    their kind (F5).
    """

    shops: tuple[Shop, ...]
    total: int
    ignored: tuple[str, ...]
    category_truncated: bool
    did_you_mean: tuple[SuggestedShop, ...]
    word_counts: tuple[WordCount, ...] | None = None
    broader: tuple[Broader, ...] | None = None
    unsettled_count: int | None = None
    unsettled: int = 0
    last: Position | None = None
    facets: Mapping[str, FacetCounts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Generations:
    """The generations as operators see them: the stamps of the live one, and of the one before if it is still stored.

    The live one has any schema version, which readers have to check. `operations` is its operations document, if any.
    """

    live: Stamp
    previous: Stamp | None
    operations: Operations | None


@dataclass(frozen=True, slots=True)
class TypeaheadState:
    """Whether suggest requests can be answered: not while files are missing or unchecked, nor until a retry succeeds.

    The reason why not is for operators, without paths and addresses; empty when it is ready.
    """

    status: Literal["ready", "opening", "failed"]
    reason: str = ""


class Snapshot(Protocol):
    """One generation as of one stamp. Every method raises BackendUnavailable or, if it was removed, GenerationGone."""

    @property
    def stamp(self) -> Stamp:
        """The stamp of all answers of this snapshot."""

    async def find(self, query: FindQuery) -> Found:
        """Search shops (M3 to M8)."""

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        """Suggest shops and categories (M9, M10), without I/O; BackendUnavailable while the typeahead is not open."""

    def domains(self, start: int, stop: int) -> list[str]:
        """The domains of the public shops from one position to another, in an order of the snapshot's own.

        It does no I/O, but takes some microseconds for each domain, so it is called in a thread. Raises as `suggest`.
        """

    async def categories(self) -> tuple[Category, ...]:
        """All categories of public shops, by descending number of shops, then slug (M11)."""

    async def closest_categories(self, text: str, limit: int) -> tuple[str, ...]:
        """The slugs of the categories that a text may mean, best first: by its words (M5), else by spelling (E4)."""

    async def shop(self, reference: str, offers: int = 0, offers_offset: int = 0) -> Shop | None:
        """The shop of an id or a reduced domain (R1), with at most so many of its offers, from the offset on.

        With 0 offers it has the few that every found shop has (A1). Offers from OFFER_WINDOW on are never returned.
        """

    async def shops(self, references: Sequence[str]) -> tuple[Shop | None, ...]:
        """The shops of ids or reduced domains, each as a search returns it, in the order of the references (A14).

        A repeated reference returns its shop repeatedly; None stands for a reference of no shop.
        """

    async def coupons(self, query: CouponQuery) -> tuple[Coupons | None, ...]:
        """The balance of the coupons of each shop of the query, in its order, or the one of all shops.

        None stands for a reference of no public shop.
        """

    async def facts(self, references: Sequence[str]) -> tuple[Facts | None, ...]:
        """The facts of ids or reduced domains, in their order; None for a reference of no public shop."""

    async def trust(self, reference: str) -> Facts | None:
        """The trust facts of a shop with at least one present signal; None for every other reference (A8)."""

    async def offer(self, offer_id: str) -> Offer | None:
        """The offer of a public shop; None when there is none."""

    async def merge_candidates(self, shop: Shop, limit: int) -> tuple[Shop, ...]:
        """Other shops that share a domain part, a whole name or a redirect with this one, in M1's order.

        Where there are more than the limit, it keeps those that share a redirect, then those with its domain and name.
        """

    async def merge_effects(self, first: Shop, second: Shop) -> MergeEffects:
        """What a merge of two shops would affect."""


class SearchBackend(Protocol):
    """A search engine that holds generations."""

    async def snapshot(self) -> Snapshot:
        """The live generation, confirmed within the last two seconds (C1).

        Raises BackendUnavailable if the live stamp is unavailable, or this service cannot read that generation.
        """

    def current(self) -> Snapshot | None:
        """The live generation if it is available without I/O; else None."""

    def typeahead_state(self) -> TypeaheadState:
        """Whether suggest requests can be answered now."""

    async def refresh(self) -> Snapshot:
        """The live generation, read again: for the one retry after GenerationGone (C2)."""

    async def generations(self) -> Generations:
        """The generations, read from the engine now and never cached: for operators, not for answers.

        Raises NothingPublished if there is no live generation yet, BackendUnavailable if the engine gives no answer.
        """

    async def close(self) -> None:
        """Release connections and files."""
