"""The evidence of a merge audit: what two public shops have in common, in pieces that a person can check (A12).

The verdict follows from rules and not from a sum: in real catalogues equal names on different domains are mostly
different companies, and several brands share the domain of their group. docs/tools.md states the rules.
"""

from dataclasses import dataclass
from typing import Final, Literal

from rapidfuzz import fuzz

from index_mappings.documents import WORLDWIDE, Shop
from index_mappings.forms import shared_names, whole_names
from index_mappings.hosts import domain_parts
from index_mappings.text import fold

Kind = Literal[
    "registrable_domain", "main_label", "name_similarity", "shared_alias", "stated_redirect", "categories", "markets"
]
Verdict = Literal["likely_same", "likely_different", "insufficient_evidence"]

SIMILAR: Final = 90.0
# Two shops that agree in none of these are different. Similarity of names is shown, but decides nothing.
_DECIDING: Final = frozenset[Kind](("registrable_domain", "main_label", "shared_alias", "stated_redirect"))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One comparison.

    Attributes:
        kind: what was compared.
        agrees: whether it indicates one shop.
        detail: what was found, from public data of the two shops.
    """

    kind: Kind
    agrees: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two shops have in common.

    Attributes:
        pieces: all comparisons, in the order of `Kind`.
        same_name: whether their sources state an equal name or alias for both.
        domain_has_others: whether a third shop without a name that both have is on their registrable domain.
        disjoint_markets: whether both state markets, none of them in common and none world-wide.
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
    """All comparisons of two shops.

    Args:
        first: a shop.
        second: another shop.
        domain_has_others: as in `Comparison`; it does not affect the number of agreeing pieces.
    """
    parts, others = domain_parts(first.domain), domain_parts(second.domain)
    similarity = fuzz.ratio(fold(first.name), fold(second.name))
    categories = [slug for slug in first.categories if slug in second.categories]
    redirect = _redirect(first, second)
    crowded = "; a shop of another name is on it too" if domain_has_others else ""
    pieces = (
        Evidence(
            "registrable_domain",
            parts.registrable == others.registrable,
            f"{parts.registrable} and {others.registrable}{crowded}",
        ),
        Evidence(
            "main_label", parts.joined_label == others.joined_label, f"{parts.main_label} and {others.main_label}"
        ),
        Evidence("name_similarity", similarity >= SIMILAR, f"names are {similarity:.0f}% alike"),
        _names(first, second),
        Evidence("stated_redirect", redirect is not None, redirect or "no redirect between them is stated"),
        Evidence("categories", bool(categories), f"shared categories: {_listed(categories)}"),
        _markets(first, second),
    )
    return Comparison(
        pieces, bool(shared_names(first, second)), domain_has_others, disjoint_markets=_are_disjoint(first, second)
    )


def verdict(found: Comparison) -> Verdict:
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


def _are_disjoint(first: Shop, second: Shop) -> bool:
    """Whether both state markets and share none; world-wide and unstated markets are shared with all."""
    stated, others = set(first.countries), set(second.countries)
    return bool(stated and others) and WORLDWIDE not in stated | others and not stated & others


def _markets(first: Shop, second: Shop) -> Evidence:
    if not first.countries or not second.countries:
        return Evidence("markets", agrees=False, detail="not stated by both")
    if WORLDWIDE in first.countries or WORLDWIDE in second.countries:
        return Evidence("markets", agrees=True, detail="one of them sells world-wide")
    shared = [code for code in first.countries if code in second.countries]
    return Evidence("markets", agrees=bool(shared), detail=f"shared markets: {_listed(shared)}")


def _listed(things: list[str]) -> str:
    return ", ".join(things[:10]) if things else "none"
