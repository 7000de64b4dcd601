"""Requests for suggestions while typing, and their results (M9, M10)."""

from dataclasses import dataclass, field

from index_mappings.documents import Category
from index_mappings.forms import QueryForms, query_forms
from index_mappings.tiers import SUGGEST_CUT


class SegmentCutError(Exception):
    """The mapped file of a segment was cut short after it was opened. The text names it, for operators."""


@dataclass(slots=True, unsafe_hash=True)
class SuggestQuery:
    """A typeahead query: the forms of the typed text, cut, and the maximum number of shops, and of categories."""

    forms: QueryForms
    country: str | None
    limit: int

    @classmethod
    def of(cls, text: str, country: str | None, limit: int) -> "SuggestQuery":
        """The query for a typed text."""
        return cls(query_forms(text, cut=SUGGEST_CUT), country, limit)


@dataclass(slots=True)
class SuggestedShop:
    """The fields of a shop that a suggestion shows; `category` is the slug of its first one."""

    id: str
    name: str
    domain: str
    category: str
    popularity: float | None


@dataclass(slots=True)
class Suggestion:
    """A suggested shop, and the tier of its best evidence (M9); `encoded` is its JSON, empty until it is first sent."""

    shop: SuggestedShop
    tier: int
    encoded: bytes = field(default=b"", compare=False, repr=False)

    def order(self) -> tuple[int, float, str]:
        """The sort key: the better tier, popularity, the id (M1, M2)."""
        return -self.tier, -(self.shop.popularity or 0.0), self.shop.id


@dataclass(slots=True, unsafe_hash=True)
class SuggestResult:
    """The answer to a typeahead query (M9, M10)."""

    categories: tuple[Category, ...]
    shops: tuple[Suggestion, ...]
