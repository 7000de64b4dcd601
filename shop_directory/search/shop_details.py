"""One shop and its related records over any engine: coupons, facts, offers, merge audits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from index_mappings.documents import Shop, shop_from_stored
from index_mappings.forms import shared_names, whole_names
from index_mappings.generations import Stamp
from index_mappings.hosts import domain_parts
from index_mappings.tiers import rank_key
from shop_directory.search.engine import Engine, Hit, Page, SearchRequest
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.plan import MATCH_ALL, AllOf, AnyOf, Below, Clause, Exact, Plan
from shop_directory.search.protocol import OFFER_WINDOW, CouponQuery, Coupons, Facts, MergeEffects, Offer

# More than the usable coupons of nearly any one shop; longer lists are read by a scan.
_FIRST_COUPONS: Final = 1_000
_ATTEMPTS: Final = 3
_CODES_PER_SEARCH: Final = 1_000


class ShopDetails:
    """Reads shops and their related records from one generation."""

    def __init__(self, engine: Engine, stamp: Stamp) -> None:
        self._engine = engine
        self.stamp = stamp

    async def shop(self, reference: str, offers: int = 0, offers_offset: int = 0) -> Shop | None:
        requests = [SearchRequest(_one("shops", Exact("refs", (reference,))), 1)]
        if (size := min(offers, OFFER_WINDOW - offers_offset)) > 0:
            # The same reference finds the offers (A1), so that one round trip is enough.
            requests.append(SearchRequest(_one("offers", Exact("shop_refs", (reference,))), size, offset=offers_offset))
        found, *listed = await self._engine.search(self.stamp, requests)
        if not found.hits:
            return None
        shop = shop_from_stored(found.hits[0].stored)
        if not offers:
            return shop
        return replace(shop, offers=tuple(hit.stored["view"] for page in listed for hit in page.hits))

    async def shops(self, references: Sequence[str]) -> tuple[Shop | None, ...]:
        if not references:
            return ()
        request = _of_shops("shops", "refs", references)
        (page,) = await self._engine.search(self.stamp, (request,))
        found = [shop_from_stored(hit.stored) for hit in page.hits]
        by_reference = {reference: shop for shop in found for reference in (shop.id, shop.domain)}
        return tuple(by_reference.get(reference) for reference in references)

    async def coupons(self, query: CouponQuery) -> tuple[Coupons | None, ...]:
        if query.shops == ():
            return ()
        plans, reasons = coupon_plans(query), withheld_reasons(query)
        requests = [SearchRequest(plan, _FIRST_COUPONS, total=True, buckets=reasons) for plan in plans]
        if query.shops is not None:
            requests.append(_of_shops("shops", "refs", query.shops))
        for _ in range(_ATTEMPTS):
            pages = await self._engine.search(self.stamp, requests)
            balances = [
                await self._balance(query, plan, reasons, page) for plan, page in zip(plans, pages, strict=False)
            ]
            if None in balances:
                continue
            if query.shops is None:
                return tuple(balances)
            known = {hit.stored[name] for hit in pages[-1].hits for name in ("id", "domain")}
            by_reference = dict(zip(dict.fromkeys(query.shops), balances, strict=True))
            return tuple(by_reference[shop] if shop in known else None for shop in query.shops)
        raise BackendUnavailable("the coupons changed faster than they could be read")

    async def _balance(self, query: CouponQuery, plan: Plan, reasons: tuple[Clause, ...], page: Page) -> Coupons | None:
        """The balance of a page; None if the coupons changed since it was read, which would break the balance."""
        usable = page.total or 0
        views = None
        if query.list_limit is None or usable <= query.list_limit:
            hits: Sequence[Hit] = page.hits
            if usable > len(hits):
                hits = await self._all(replace(plan, excluded=reasons))
            if len(hits) != usable:
                return None
            views = tuple([hit.stored["view"] for hit in hits])
        expired, rejected, reserved, policy = page.counts
        return Coupons(usable, expired, rejected, reserved, policy, views)

    async def facts(self, references: Sequence[str]) -> tuple[Facts | None, ...]:
        return await self._facts("refs", references)

    async def trust(self, reference: str) -> Facts | None:
        (facts,) = await self._facts("trusted_refs", (reference,))
        return facts

    async def offer(self, offer_id: str) -> Offer | None:
        (page,) = await self._engine.search(self.stamp, (SearchRequest(_one("offers", Exact("id", (offer_id,))), 1),))
        if not page.hits:
            return None
        stored = page.hits[0].stored
        return Offer(stored["id"], stored["shop"], stored["checkout_url"], stored["affiliate"])

    async def merge_candidates(self, shop: Shop, limit: int) -> tuple[Shop, ...]:
        (page,) = await self._engine.search(self.stamp, (SearchRequest(merge_plan(shop), limit),))
        found = [shop_from_stored(hit.stored) for hit in page.hits]
        return tuple(sorted(found, key=lambda other: rank_key(other.popularity, other.id)))

    async def merge_effects(self, first: Shop, second: Shop) -> MergeEffects:
        """What a merge would affect: one round trip for the counts, further ones for the shared codes."""
        own = [_one(kind, Exact("shop_refs", (shop.id,))) for kind in ("coupons", "offers") for shop in (first, second)]
        requests = [SearchRequest(plan, 1, total=True) for plan in (*own, *_neighbours_of_another_name(first, second))]
        found = await self._engine.search(self.stamp, requests)
        coupons, others_coupons, offers, others_offers, *neighbours = [page.total or 0 for page in found]
        fewer, more = (first, second) if coupons <= others_coupons else (second, first)
        shared = await self._shared_codes(fewer, more) if coupons and others_coupons else 0
        return MergeEffects(coupons + others_coupons, offers + others_offers, shared, any(neighbours))

    async def _shared_codes(self, fewer: Shop, more: Shop) -> int:
        """The number of the codes of one shop that another one has too, which may have many more codes."""
        own = _one("coupons", Exact("shop_refs", (fewer.id,)))
        others = _one("coupons", Exact("shop_refs", (more.id,)))
        codes = sorted({hit.stored["folded_code"] for hit in await self._all(own)})
        shared: set[str] = set()
        for start in range(0, len(codes), _CODES_PER_SEARCH):
            some = Exact("folded_code", tuple(codes[start : start + _CODES_PER_SEARCH]))
            shared |= {hit.stored["folded_code"] for hit in await self._all(replace(others, filters=(some,)))}
        return len(shared)

    async def _facts(self, field: str, references: Sequence[str]) -> tuple[Facts | None, ...]:
        if not references:
            return ()
        (page,) = await self._engine.search(self.stamp, (_of_shops("facts", field, references),))
        found = {reference: hit.stored for hit in page.hits for reference in hit.stored["shop"].values()}
        return tuple(_facts_of(found[reference]) if reference in found else None for reference in references)

    async def _all(self, plan: Plan) -> Sequence[Hit]:
        return [hit async for hits in self._engine.scan(self.stamp, plan) for hit in hits]


def coupon_plans(query: CouponQuery) -> tuple[Plan, ...]:
    """The plans for coupons whose validity has started: one for each distinct shop of the query, or one for all."""
    started = Below("valid_from_us", query.now_us + 1)
    of_shops = [()] if query.shops is None else [(Exact("shop_refs", (shop,)),) for shop in dict.fromkeys(query.shops)]
    return tuple([Plan("coupons", ((0, MATCH_ALL),), (started, *of_shop)) for of_shop in of_shops])


def withheld_reasons(query: CouponQuery) -> tuple[Clause, ...]:
    """The clauses of the reasons to withhold a coupon; the first one that holds counts (A4)."""
    blocked: list[Clause] = [Exact("blocked_channels", (query.channel,))]
    if query.country is not None:
        blocked.append(Exact("blocked_countries", (query.country,)))
    return (
        Below("valid_until_us", query.now_us),
        Exact("status", ("verified_rejected",)),
        Exact("reserved", ("yes",)),
        AnyOf(tuple(blocked)),
    )


def merge_plan(shop: Shop) -> Plan:
    """The plan for the other shops that may be the same as this one, those first that are or can be likely so (A12)."""
    parts = domain_parts(shop.domain)
    ends = {end for redirect in shop.redirects for end in (redirect["from_domain"], redirect["to_domain"])}
    domain, named = Exact("registrable", (parts.registrable,)), Exact("full", whole_names(shop.name, shop.aliases))
    possible = AnyOf((domain, Exact("main_label", (parts.joined_label,)), named))
    tiers: list[tuple[int, Clause]] = [(1, AllOf((domain, named))), (0, possible)]
    if others := tuple(sorted(ends - {shop.domain})):
        tiers.insert(0, (2, Exact("refs", others)))
    return Plan("shops", tuple(tiers), excluded=(Exact("id", (shop.id,)),))


def _neighbours_of_another_name(first: Shop, second: Shop) -> tuple[Plan, ...]:
    """The plan for other shops on the domain of both, if they share one and a name, that have no such name."""
    registrable, names = domain_parts(first.domain).registrable, shared_names(first, second)
    if registrable != domain_parts(second.domain).registrable or not names:
        return ()
    plan = _one("shops", Exact("registrable", (registrable,)))
    either = Exact("id", (first.id, second.id)), Exact("stated", tuple(sorted(names)))
    return (replace(plan, excluded=either),)


def _facts_of(stored: Mapping[str, Any]) -> Facts:
    lists = (tuple(stored[field]) for field in ("signals", "pipeline_gaps"))
    return Facts(stored["shop"], stored["shipping"], stored["policies"], *lists)


def _of_shops(kind: str, field: str, references: Sequence[str]) -> SearchRequest:
    """The search for the documents of shops, of which each has one: so there are at most as many as references."""
    distinct = tuple(dict.fromkeys(references))
    return SearchRequest(_one(kind, Exact(field, distinct)), len(distinct))


def _one(kind: str, clause: Clause) -> Plan:
    return Plan(kind, ((0, clause),))
