"""resolve_conflict: whether two entries may be one shop, with the evidence; it merges nothing (A12).

The verdict follows from the rules of docs/tools.md and not from a sum: in real catalogues equal names on different
domains are mostly different companies, and several brands share the domain of their group.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pydantic import Field
from rapidfuzz import fuzz

from index_mappings.documents import WORLDWIDE, Shop
from index_mappings.forms import shared_names, stated_names, whole_names
from index_mappings.hosts import domain_parts
from index_mappings.text import fold
from service.errors import FieldError, InvalidInputError, ShopNotFoundError
from service.tools.get_shop import public_shop
from service.tools.request import NoShopRequest, ReferenceText, RequiredReferenceText
from service.tools.shop_view import ShopView, shop_wire
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse, is_none

Kind = Literal[
    "registrable_domain", "main_label", "name_similarity", "shared_alias", "stated_redirect", "categories", "markets"
]
ConflictVerdict = Literal["likely_same", "likely_different", "insufficient_evidence"]

SIMILAR: Final = 90.0
# Two shops that agree in none of these are different. Similarity of names is shown, but decides nothing.
_DECIDING: Final = frozenset[Kind](("registrable_domain", "main_label", "shared_alias", "stated_redirect"))
_CANDIDATES: Final = 10
# Candidates are ordered by their evidence, so more are compared than are shown.
_COMPARED: Final = 200
_BEST_FIRST: Final[tuple[ConflictVerdict, ...]] = ("likely_same", "insufficient_evidence", "likely_different")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One comparison, and whether it indicates one shop; the detail is made of public data of the two shops."""

    kind: Kind
    agrees: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two shops have in common: pieces in the order of `Kind`.

    `same_name` says whether their sources state an equal name or alias for both, `domain_has_others` whether a third
    shop without a name that both have is on their registrable domain. Disjoint markets are stated by both, with none in
    common and none world-wide.
    """

    pieces: tuple[Evidence, ...]
    same_name: bool
    domain_has_others: bool
    disjoint_markets: bool

    @property
    def agreeing(self) -> int:
        """How many pieces of evidence agree."""
        return sum(piece.agrees for piece in self.pieces)


def compare(first: Shop, second: Shop, *, domain_has_others: bool = False) -> Comparison:
    """All comparisons of two shops; `domain_has_others` does not affect the number of agreeing pieces."""
    parts, other = domain_parts(first.domain), domain_parts(second.domain)
    similarity = fuzz.ratio(fold(first.name), fold(second.name))
    categories = [slug for slug in first.categories if slug in second.categories]
    redirect = _redirect(first, second)
    crowded = "; a shop of another name is on it too" if domain_has_others else ""
    pieces = (
        Evidence(
            "registrable_domain",
            parts.registrable == other.registrable,
            f"{parts.registrable} and {other.registrable}{crowded}",
        ),
        Evidence("main_label", parts.joined_label == other.joined_label, f"{parts.main_label} and {other.main_label}"),
        Evidence("name_similarity", similarity >= SIMILAR, f"names are {similarity:.0f}% alike"),
        _names(first, second),
        Evidence("stated_redirect", redirect is not None, redirect or "no redirect between them is stated"),
        Evidence("categories", bool(categories), f"shared categories: {_listed(categories)}"),
        _markets(first, second),
    )
    stated, others = set(first.countries), set(second.countries)
    # World-wide and unstated markets are shared with all.
    disjoint = bool(stated and others) and WORLDWIDE not in stated | others and not stated & others
    return Comparison(pieces, bool(shared_names(first, second)), domain_has_others, disjoint)


def verdict(found: Comparison) -> ConflictVerdict:
    """The verdict by the documented rules."""
    agrees = {piece.kind for piece in found.pieces if piece.agrees}
    one_on_domain = "registrable_domain" in agrees and found.same_name and not found.domain_has_others
    if "stated_redirect" in agrees or (one_on_domain and not found.disjoint_markets):
        return "likely_same"
    return "insufficient_evidence" if agrees & _DECIDING else "likely_different"


def _names(first: Shop, second: Shop) -> Evidence:
    if stated := shared_names(first, second):
        return Evidence("shared_alias", agrees=True, detail=f"shared names: {_listed(sorted(stated))}")
    variants = set(whole_names(first.name, first.aliases)) & set(whole_names(second.name, second.aliases))
    if variants:
        detail = f"shared names, but only transliterated, without spaces or articles: {_listed(sorted(variants))}"
        return Evidence("shared_alias", agrees=True, detail=detail)
    return Evidence("shared_alias", agrees=False, detail="shared names: none")


def _redirect(first: Shop, second: Shop) -> str | None:
    for redirect in (*first.redirects, *second.redirects):
        if {redirect["from_domain"], redirect["to_domain"]} == {first.domain, second.domain}:
            when = f", seen {redirect['observed_at']}" if redirect["observed_at"] else ""
            return f"{redirect['from_domain']} leads to {redirect['to_domain']}{when}"
    return None


def _markets(first: Shop, second: Shop) -> Evidence:
    if not first.countries or not second.countries:
        return Evidence("markets", agrees=False, detail="not stated by both")
    if WORLDWIDE in first.countries or WORLDWIDE in second.countries:
        return Evidence("markets", agrees=True, detail="one of them sells world-wide")
    shared = [code for code in first.countries if code in second.countries]
    return Evidence("markets", agrees=bool(shared), detail=f"shared markets: {_listed(shared)}")


def _listed(things: list[str]) -> str:
    return ", ".join(things[:10]) if things else "none"


class ResolveConflictRequest(NoShopRequest):
    """Which entries."""

    from_shop_id: RequiredReferenceText = Field(
        description="The shop to merge: its id, or its domain in any form.", examples=["shop_0042"]
    )
    to_shop_id: ReferenceText = Field(None, description="The shop to merge it into. Leave out for candidates.")


class EvidenceView(ToolResponse):
    """One comparison."""

    kind: str = Field(description="What was compared.")
    agrees: bool = Field(description="Whether it suggests that both are the same shop.")
    detail: str = Field(description="The finding.")


class EffectsView(ToolResponse):
    """What a merge would affect."""

    coupons: int = Field(description="Coupons of both shops.")
    offers: int = Field(description="Offers of both shops.")
    duplicate_codes: int = Field(description="Coupon codes that both shops have.")


class Audit(ToolResponse):
    """One pair."""

    to: ShopView = Field(description="The other shop.")
    evidence: tuple[EvidenceView, ...] = Field(description="All comparisons.")
    effects: EffectsView = Field(description="What a merge would affect.")
    verdict: ConflictVerdict = Field(description="Conclusion from the evidence, by documented rules.")


class ResolveConflictResponse(ToolResponse):
    """The requested pair, or the requested shop and its candidates."""

    from_: ShopView = Field(alias="from", description="The shop in question.")
    to: ShopView | None = Field(None, description="Only with to_shop_id: the other shop.", exclude_if=is_none)
    evidence: tuple[EvidenceView, ...] | None = Field(
        None, description="Only with to_shop_id: all comparisons.", exclude_if=is_none
    )
    effects: EffectsView | None = Field(
        None, description="Only with to_shop_id: what a merge would affect.", exclude_if=is_none
    )
    verdict: ConflictVerdict | None = Field(
        None, description="Only with to_shop_id: conclusion from the evidence, by documented rules.", exclude_if=is_none
    )
    candidates: tuple[Audit, ...] | None = Field(
        None,
        description="Only without to_shop_id: up to 10 other shops, by verdict, then most agreeing evidence first.",
        exclude_if=is_none,
    )


async def run(request: ResolveConflictRequest, context: ToolContext) -> dict[str, Any]:
    """Audit a pair, or look for candidates."""
    first = await public_shop(request.from_shop_id, context, field="from_shop_id")
    view = _view(first)
    if request.to_shop_id is None:
        return {"from": view, "candidates": await _candidates(first, context)}
    second = await public_shop(request.to_shop_id, context, field="to_shop_id")
    if second.id == first.id:
        message = "refers to the same shop as from_shop_id; name another shop, or leave it out to look for candidates"
        raise InvalidInputError(f"to_shop_id {message}.", [FieldError("to_shop_id", message)])
    return {"from": view, **await _audit(first, second, context)}


async def _candidates(first: Shop, context: ToolContext) -> tuple[dict[str, Any], ...]:
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


def _view(shop: Shop) -> dict[str, Any]:
    """A shop without its offers, which say nothing of whether two shops are one and are most of a view (F17)."""
    return {**shop_wire(shop), "offers": ()}


async def _audit(first: Shop, second: Shop, context: ToolContext) -> dict[str, Any]:
    """The wire form of `Audit`."""
    effects = await context.search.merge_effects(first, second)
    found = compare(first, second, domain_has_others=effects.domain_has_others)
    return {
        "to": _view(second),
        "evidence": tuple(asdict(piece) for piece in found.pieces),
        "effects": {name: getattr(effects, name) for name in EffectsView.model_fields},
        "verdict": verdict(found),
    }


RESOLVE_CONFLICT = Tool(
    name="resolve_conflict",
    title="Audit a shop merge",
    description=(
        "Check whether two entries are the same shop: give both, or only from_shop_id for up to 10 candidates. "
        "Each pair has its evidence, the effects of a merge, and a verdict: likely_same (a stated redirect, or one "
        "name on one domain that no shop with another name shares), likely_different (nothing in common that "
        "identifies a shop) or insufficient_evidence: one name on two domains is usually two companies. Shops have "
        "no offers here. Nothing is merged. Needs an API token."
    ),
    request=ResolveConflictRequest,
    response=ResolveConflictResponse,
    token=TokenRule.REQUIRED,
    run=run,
    errors=(ShopNotFoundError,),
    examples=(
        Example("Compare two", {"from_shop_id": "shop_kiefernhaus", "to_shop_id": "shop_store-kiefernhaus"}),
        Example("Look for candidates", {"from_shop_id": "kiefernhaus.internal"}),
    ),
)
