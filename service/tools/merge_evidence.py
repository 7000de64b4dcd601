"""The evidence of a merge audit: what two public shops have in common, each piece checkable by a person (A12).

Every piece of evidence has points when it agrees. From LIKELY_SAME points up two shops are likely the same; with at
most LIKELY_DIFFERENT they are likely different; in between the evidence is insufficient. docs/tools.md has the table.
"""

from dataclasses import dataclass
from typing import Final, Literal

from rapidfuzz import fuzz

from index_mappings.documents import Shop
from index_mappings.forms import whole_names
from index_mappings.hosts import domain_parts
from index_mappings.text import fold

Verdict = Literal["likely_same", "likely_different", "insufficient_evidence"]

# Shops of one name in one trade are common (a brand's national shops), so name and category alone never suffice.
POINTS: Final = {
    "registrable_domain": 4,
    "main_label": 2,
    "name_similarity": 1,
    "shared_alias": 2,
    "stated_redirect": 4,
    "categories": 0,
    "markets": 0,
}
LIKELY_SAME: Final = 4
LIKELY_DIFFERENT: Final = 0
SIMILAR: Final = 90.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """One comparison.

    Attributes:
        kind: what was compared.
        agrees: whether it speaks for one shop.
        detail: what was found, from public data of the two shops.
    """

    kind: str
    agrees: bool
    detail: str


def evidence(first: Shop, second: Shop) -> tuple[Evidence, ...]:
    """All comparisons of two shops, in the order of POINTS."""
    parts, others = domain_parts(first.domain), domain_parts(second.domain)
    names, other_names = set(whole_names(first.name, first.aliases)), set(whole_names(second.name, second.aliases))
    similarity = fuzz.ratio(fold(first.name), fold(second.name))
    shared_names = sorted(names & other_names)
    categories = [slug for slug in first.categories if slug in second.categories]
    redirect = _redirect(first, second)
    return (
        Evidence(
            "registrable_domain",
            parts.registrable == others.registrable,
            f"{parts.registrable} and {others.registrable}",
        ),
        Evidence("main_label", parts.main_label == others.main_label, f"{parts.main_label} and {others.main_label}"),
        Evidence("name_similarity", similarity >= SIMILAR, f"names are {similarity:.0f}% alike"),
        Evidence("shared_alias", bool(shared_names), f"shared names: {_listed(shared_names)}"),
        Evidence("stated_redirect", redirect is not None, redirect or "no redirect between them is stated"),
        Evidence("categories", bool(categories), f"shared categories: {_listed(categories)}"),
        _markets(first, second),
    )


def verdict(found: tuple[Evidence, ...]) -> Verdict:
    """What the evidence comes to, by its points."""
    points = sum(POINTS[piece.kind] for piece in found if piece.agrees)
    if points >= LIKELY_SAME:
        return "likely_same"
    return "likely_different" if points <= LIKELY_DIFFERENT else "insufficient_evidence"


def _redirect(first: Shop, second: Shop) -> str | None:
    for redirect in (*first.redirects, *second.redirects):
        if {redirect["from_domain"], redirect["to_domain"]} == {first.domain, second.domain}:
            when = f", seen {redirect['observed_at']}" if redirect["observed_at"] else ""
            return f"{redirect['from_domain']} leads to {redirect['to_domain']}{when}"
    return None


def _markets(first: Shop, second: Shop) -> Evidence:
    if not first.countries or not second.countries:
        return Evidence("markets", agrees=False, detail="not stated by both")
    if "WORLDWIDE" in first.countries or "WORLDWIDE" in second.countries:
        return Evidence("markets", agrees=True, detail="one of them sells world-wide")
    shared = [code for code in first.countries if code in second.countries]
    return Evidence("markets", agrees=bool(shared), detail=f"shared markets: {_listed(shared)}")


def _listed(things: list[str]) -> str:
    return ", ".join(things[:10]) if things else "none"
