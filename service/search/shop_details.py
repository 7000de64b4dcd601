"""One shop and what belongs to it over any engine that can run a plan: coupons, facts, offers, merge audits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from index_mappings.documents import Shop, shop_from_stored
from index_mappings.forms import shared_names, stated_names, whole_names
from index_mappings.generations import Stamp
from index_mappings.hosts import domain_parts
from service.search.clauses import EVERYTHING, AnyOf, Below, Clause, Exact
from service.search.engine import Ask, Engine, Hit
from service.search.failures import BackendUnavailable
from service.search.plan import Plan
from service.search.protocol import REACHED_OFFERS, CouponQuery, Coupons, Facts, MergeEffects, Offer

# More usable coupons than one shop has; the list of all shops is read in pages.
_FIRST_COUPONS: Final = 1_000
_TRIES: Final = 3
_CODES_A_SEARCH: Final = 1_000
# More shops than one registrable domain has, but for hosts of shops; those are read in pages.
_FIRST_NEIGHBOURS: Final = 50


class Belongings:
    """What belongs to shops, on one generation."""

    def __init__(self, engine: Engine, stamp: Stamp) -> None:
        self._engine = engine
        self._stamp = stamp

    async def shop(self, reference: str, offers: int = 0, offers_offset: int = 0) -> Shop | None:
        """The shop of an id or a reduced domain, with up to `offers` of its offers from the offset on."""
        asks = [Ask(_one("shops", Exact("refs", (reference,))), 1)]
        if (size := min(offers, REACHED_OFFERS - offers_offset)) > 0:
            # With the shop in one round trip: its offers are found by the same reference (A1).
            asks.append(Ask(_one("offers", Exact("shop_refs", (reference,))), size, offset=offers_offset))
        found, *listed = await self._engine.search(self._stamp, asks)
        if not found.hits:
            return None
        shop = shop_from_stored(found.hits[0].stored)
        if not offers:
            return shop
        return replace(shop, offers=tuple(hit.stored["view"] for page in listed for hit in page.hits))

    async def shops(self, references: Sequence[str]) -> tuple[Shop | None, ...]:
        """The shops of ids or reduced domains, found by one search."""
        asked = tuple(dict.fromkeys(references))
        if not asked:
            return ()
        # A reference is one shop's alone, so there are no more shops than references.
        (page,) = await self._engine.search(self._stamp, (Ask(_one("shops", Exact("refs", asked)), len(asked)),))
        found = [shop_from_stored(hit.stored) for hit in page.hits]
        by_reference = {reference: shop for shop in found for reference in (shop.id, shop.domain)}
        return tuple(by_reference.get(reference) for reference in references)

    async def coupons(self, query: CouponQuery) -> Coupons | None:
        """The balance of coupons, as of the call's moment (A4 to A6)."""
        plan, sorts = coupon_plan(query), coupon_sorts(query)
        asks = [Ask(plan, _FIRST_COUPONS, total=True, sorts=sorts)]
        if query.shop is not None:
            asks.append(Ask(_one("shops", Exact("refs", (query.shop,))), 1))
        for _ in range(_TRIES):
            page, *shops = await self._engine.search(self._stamp, asks)
            if shops and not shops[0].hits:
                return None
            usable = page.total or 0
            if query.most is not None and usable > query.most:
                return _balance(usable, page.counts, None)
            hits: Sequence[Hit] = page.hits
            if usable > len(hits):
                hits = await self._all(replace(plan, excluded=sorts))
            # Both looks must have seen the same: a change between them would break the balance.
            if len(hits) == usable:
                return _balance(usable, page.counts, hits)
        raise BackendUnavailable("the coupons changed faster than they could be read")

    async def facts(self, reference: str) -> Facts | None:
        """Shipping of a public shop."""
        return await self._facts(Exact("refs", (reference,)))

    async def trust(self, reference: str) -> Facts | None:
        """Trust of a shop with a present signal; everything else is the same miss (A8)."""
        return await self._facts(Exact("trusted_refs", (reference,)))

    async def offer(self, offer_id: str) -> Offer | None:
        """An offer of a public shop."""
        (page,) = await self._engine.search(self._stamp, (Ask(_one("offers", Exact("id", (offer_id,))), 1),))
        if not page.hits:
            return None
        stored = page.hits[0].stored
        return Offer(stored["id"], stored["shop"], stored["checkout_url"], stored["affiliate"])

    async def merge_candidates(self, shop: Shop, most: int) -> tuple[Shop, ...]:
        """Other shops that share a domain part, a whole name or a redirect (A12)."""
        plan = replace(_one("shops", merge_clause(shop)), excluded=(Exact("id", (shop.id,)),))
        (page,) = await self._engine.search(self._stamp, (Ask(plan, most),))
        return tuple(shop_from_stored(hit.stored) for hit in page.hits)

    async def merge_effects(self, first: Shop, second: Shop) -> MergeEffects:
        """What a merge would touch: counted in one round trip, the codes that both have in further ones."""
        both = Exact("shop_refs", (first.id, second.id))
        asks = [Ask(_one(kind, both), 1, total=True) for kind in ("coupons", "offers")]
        neighbours = _neighbours(first, second)
        asks += [Ask(plan, _FIRST_NEIGHBOURS) for plan in neighbours]
        coupons, offers, *pages = await self._engine.search(self._stamp, asks)
        names = shared_names(first, second)
        others: Sequence[Hit] = [hit for page in pages for hit in page.hits]
        if len(others) == _FIRST_NEIGHBOURS and not _any_lacks(others, names):
            others = [hit for plan in neighbours for hit in await self._all(plan)]
        codes = sorted({hit.stored["folded_code"] for hit in await self._all(_one("coupons", _of(first)))})
        shared: set[str] = set()
        for start in range(0, len(codes), _CODES_A_SEARCH):
            plan = replace(
                _one("coupons", _of(second)),
                filters=(Exact("folded_code", tuple(codes[start : start + _CODES_A_SEARCH])),),
            )
            shared |= {hit.stored["folded_code"] for hit in await self._all(plan)}
        has_others = bool(names) and _any_lacks(others, names)
        return MergeEffects(coupons.total or 0, offers.total or 0, len(shared), has_others)

    async def _facts(self, clause: Clause) -> Facts | None:
        (page,) = await self._engine.search(self._stamp, (Ask(_one("facts", clause), 1),))
        if not page.hits:
            return None
        stored = page.hits[0].stored
        return Facts(stored["shop"], stored["shipping"], tuple(stored["signals"]), tuple(stored["pipeline_gaps"]))

    async def _all(self, plan: Plan) -> Sequence[Hit]:
        return [hit async for hits in self._engine.every(self._stamp, plan) for hit in hits]


def _balance(usable: int, counts: tuple[int, ...], hits: Sequence[Hit] | None) -> Coupons:
    expired, rejected, reserved, policy = counts
    views = None if hits is None else tuple(hit.stored["view"] for hit in hits)
    return Coupons(usable, expired, rejected, reserved, policy, views)


def coupon_plan(query: CouponQuery) -> Plan:
    """The coupons that take part: begun by now, of the shop if one is asked for."""
    filters: tuple[Clause, ...] = (Below("valid_from_us", query.now_us + 1),)
    if query.shop is not None:
        filters = (*filters, Exact("shop_refs", (query.shop,)))
    return Plan("coupons", ((0, EVERYTHING),), filters)


def coupon_sorts(query: CouponQuery) -> tuple[Clause, ...]:
    """Why a coupon is withheld, in the order in which the first reason counts (A4)."""
    blocked: list[Clause] = [Exact("blocked_channels", (query.channel,))]
    if query.country is not None:
        blocked.append(Exact("blocked_countries", (query.country,)))
    return (
        Below("valid_until_us", query.now_us),
        Exact("status", ("verified_rejected",)),
        Exact("reserved", ("yes",)),
        AnyOf(tuple(blocked)),
    )


def merge_clause(shop: Shop) -> Clause:
    """What another shop may have in common with this one."""
    parts = domain_parts(shop.domain)
    ends = {end for redirect in shop.redirects for end in (redirect["from_domain"], redirect["to_domain"])}
    clauses: list[Clause] = [
        Exact("registrable", (parts.registrable,)),
        Exact("main_label", (parts.main_label,)),
        Exact("full", whole_names(shop.name, shop.aliases)),
    ]
    if others := tuple(sorted(ends - {shop.domain})):
        clauses.append(Exact("refs", others))
    return AnyOf(tuple(clauses))


def _neighbours(first: Shop, second: Shop) -> tuple[Plan, ...]:
    """The search for other shops on the registrable domain of both; none where they share no domain."""
    registrable = domain_parts(first.domain).registrable
    if registrable != domain_parts(second.domain).registrable:
        return ()
    plan = _one("shops", Exact("registrable", (registrable,)))
    return (replace(plan, excluded=(Exact("id", (first.id, second.id)),)),)


def _any_lacks(shops: Sequence[Hit], names: frozenset[str]) -> bool:
    return any(not names & stated_names(hit.stored["name"], hit.stored["aliases"]) for hit in shops)


def _one(kind: str, clause: Clause) -> Plan:
    return Plan(kind, ((0, clause),))


def _of(shop: Shop) -> Clause:
    return Exact("shop_refs", (shop.id,))
