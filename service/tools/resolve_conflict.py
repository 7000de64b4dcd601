"""resolve_conflict: whether two entries may be one shop, with the evidence; it merges nothing (A12)."""

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from index_mappings.documents import Shop
from index_mappings.forms import shared_names, stated_names
from index_mappings.hosts import domain_parts
from service.errors import FieldError, InvalidInputError, ShopNotFoundError
from service.tools.fields import ReferenceText, RequiredReferenceText
from service.tools.merge_evidence import Verdict, compare, verdict
from service.tools.request import NoShopRequest, reduce_reference
from service.tools.shop_view import ShopView, shop_view
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse, is_none

_CANDIDATES: Final = 10
# Candidates are ordered by their evidence, so more are compared than are shown.
_COMPARED: Final = 200
_BEST_FIRST: Final[tuple[Verdict, ...]] = ("likely_same", "insufficient_evidence", "likely_different")

DESCRIPTION = (
    "Audit whether two entries of the directory are the same shop: give both, or from_shop_id alone to get up to 10 "
    "candidates. Each pair comes with its evidence, what a merge would touch, and a verdict: likely_same (a stated "
    "redirect, or one name on one domain that no shop of another name shares), likely_different (nothing in common "
    "that identifies a shop) or insufficient_evidence; one name on two domains is mostly two companies. It is "
    "read-only: nothing is merged. Requires an API token."
)


class ResolveConflictRequest(NoShopRequest):
    """Which entries."""

    from_shop_id: RequiredReferenceText = Field(
        description="The shop to merge: id, or domain in any form.", examples=["shop_0042"]
    )
    to_shop_id: ReferenceText = Field(None, description="The shop to merge it into. Left out: candidates.")


class EvidenceView(ToolResponse):
    """One comparison."""

    kind: str = Field(description="What was compared.")
    agrees: bool = Field(description="Whether it speaks for one and the same shop.")
    detail: str = Field(description="What was found.")


class EffectsView(ToolResponse):
    """What a merge would touch."""

    coupons: int = Field(description="Coupons of both shops.")
    offers: int = Field(description="Offers of both shops.")
    duplicate_codes: int = Field(description="Coupon codes that both shops have.")


class Audit(ToolResponse):
    """One pair."""

    to: ShopView = Field(description="The shop compared with.")
    evidence: tuple[EvidenceView, ...] = Field(description="All comparisons.")
    effects: EffectsView = Field(description="What a merge would touch.")
    verdict: Verdict = Field(description="What the evidence comes to, by documented rules.")


class ResolveConflictResponse(ToolResponse):
    """The requested pair, or the requested shop and its candidates."""

    from_: ShopView = Field(alias="from", description="The shop asked about.")
    to: ShopView | None = Field(None, description="Only with to_shop_id: the shop compared with.", exclude_if=is_none)
    evidence: tuple[EvidenceView, ...] | None = Field(
        None, description="Only with to_shop_id: all comparisons.", exclude_if=is_none
    )
    effects: EffectsView | None = Field(
        None, description="Only with to_shop_id: what a merge would touch.", exclude_if=is_none
    )
    verdict: Verdict | None = Field(
        None, description="Only with to_shop_id: what the evidence comes to, by documented rules.", exclude_if=is_none
    )
    candidates: tuple[Audit, ...] | None = Field(
        None,
        description="Only without to_shop_id: up to 10 other shops, by verdict, then most agreeing evidence first.",
        exclude_if=is_none,
    )


async def run(request: ResolveConflictRequest, context: ToolContext) -> ResolveConflictResponse:
    """Audit a pair, or look for candidates."""
    first = await _shop(request.from_shop_id, context)
    view = shop_view(first)
    if request.to_shop_id is None:
        candidates = await _candidates(first, context)
        return ResolveConflictResponse.model_validate({"from": view, "candidates": candidates})
    second = await _shop(request.to_shop_id, context)
    if second.id == first.id:
        message = "refers to the same shop as from_shop_id; name another shop, or leave it out to look for candidates"
        raise InvalidInputError(f"to_shop_id {message}.", [FieldError("to_shop_id", message)])
    audit = await _audit(first, second, context)
    pair = {name: getattr(audit, name) for name in Audit.model_fields}
    return ResolveConflictResponse.model_validate({"from": view, **pair})


async def _candidates(first: Shop, context: ToolContext) -> tuple[Audit, ...]:
    shops = await context.search.merge_candidates(first, _COMPARED)
    crowded = await _crowded(first, shops, context)

    def order(shop: Shop) -> tuple[int, int]:
        found = compare(first, shop, domain_has_others=shop.id in crowded)
        return _BEST_FIRST.index(verdict(found)), -found.agreeing

    # They are in M1's order, and the stable sort preserves it among equals (M11).
    return tuple([await _audit(first, shop, context) for shop in sorted(shops, key=order)[:_CANDIDATES]])


async def _crowded(first: Shop, shops: Sequence[Shop], context: ToolContext) -> set[str]:
    """The ids of those candidates with which `MergeEffects.domain_has_others` is true."""
    registrable = domain_parts(first.domain).registrable
    # All shops on the domain are candidates, if these are not cut off.
    on_domain = [shop for shop in shops if domain_parts(shop.domain).registrable == registrable]
    stated = [stated_names(shop.name, shop.aliases) for shop in on_domain]
    known = {frozenset[str](): False}
    for shop in on_domain:
        if (names := shared_names(first, shop)) not in known:
            known[names] = any(not names & others for others in stated)
            if not known[names] and len(shops) == _COMPARED:
                known[names] = (await context.search.merge_effects(first, shop)).domain_has_others
    return {shop.id for shop in on_domain if known[shared_names(first, shop)]}


async def _shop(text: str, context: ToolContext) -> Shop:
    lookup = reduce_reference(text)
    shop = None if lookup is None else await context.search.shop(lookup)
    if shop is None:
        raise ShopNotFoundError(text)
    return shop


async def _audit(first: Shop, second: Shop, context: ToolContext) -> Audit:
    effects = await context.search.merge_effects(first, second)
    found = compare(first, second, domain_has_others=effects.domain_has_others)
    return Audit(
        to=shop_view(second),
        evidence=tuple(EvidenceView(kind=one.kind, agrees=one.agrees, detail=one.detail) for one in found.pieces),
        effects=EffectsView(coupons=effects.coupons, offers=effects.offers, duplicate_codes=effects.duplicate_codes),
        verdict=verdict(found),
    )


RESOLVE_CONFLICT = Tool(
    name="resolve_conflict",
    title="Audit a shop merge",
    description=DESCRIPTION,
    request=ResolveConflictRequest,
    response=ResolveConflictResponse,
    token=TokenRule.REQUIRED,
    run=run,
    examples=(
        Example("Compare two", {"from_shop_id": "shop_kiefernhaus", "to_shop_id": "shop_store-kiefernhaus"}),
        Example("Look for candidates", {"from_shop_id": "kiefernhaus.internal"}),
    ),
)
