"""Which categories a word means, answered from the categories of one stamp, without asking the engine (M5, M10)."""

from collections.abc import Iterable
from dataclasses import dataclass

from index_mappings.documents import Category
from index_mappings.forms import QueryForms
from index_mappings.text import words_of
from index_mappings.tiers import CATEGORY_PREFIX_MIN


@dataclass(frozen=True, slots=True)
class Resolved:
    """The slugs that a query's words mean, word by word, and whether the cap left some out."""

    slugs: dict[str, tuple[str, ...]]
    truncated: bool


class CategoryTable:
    """All categories of one stamp, in M11's order, with their folded words."""

    def __init__(self, categories: Iterable[Category]) -> None:
        self.categories = tuple(sorted(categories, key=lambda category: (-category.count, category.slug)))
        self._words = {
            category.slug: frozenset(words_of(category.name)) | frozenset(words_of(category.slug))
            for category in self.categories
        }

    def slugs_of(self, word: str) -> tuple[str, ...]:
        """The slugs of the categories that have a word which this one equals or, from 3 characters up, begins."""
        return tuple(category.slug for category in self.categories if _means(word, self._words[category.slug]))

    def resolve(self, words: Iterable[str], cap: int) -> Resolved:
        """What each word means, at most `cap` categories a word (M5)."""
        found = {word: self.slugs_of(word) for word in words}
        return Resolved(
            slugs={word: slugs[:cap] for word, slugs in found.items()},
            truncated=any(len(slugs) > cap for slugs in found.values()),
        )

    def suggested(self, query: QueryForms, limit: int) -> tuple[Category, ...]:
        """The categories that have a word which begins with the query or with its last word (M10)."""
        if not query.texts:
            return self.categories[:limit]
        if not query.words:
            return ()
        beginnings = (query.spaced, query.words[-1])
        found = (
            category
            for category in self.categories
            if any(word.startswith(beginnings) for word in self._words[category.slug])
        )
        return tuple(category for category, _ in zip(found, range(limit), strict=False))


def _means(word: str, category_words: frozenset[str]) -> bool:
    return word in category_words or (
        len(word) >= CATEGORY_PREFIX_MIN and any(known.startswith(word) for known in category_words)
    )
