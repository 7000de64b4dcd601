"""Which categories a word means, answered from the categories of one stamp, without asking the engine (M5, M10)."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

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
    """All categories of one stamp, in M11's order, with all beginnings of their folded words."""

    def __init__(self, categories: Iterable[Category]) -> None:
        self.categories = tuple(sorted(categories, key=lambda category: (-category.count, category.slug)))
        whole: dict[str, list[Category]] = {}
        begun: dict[str, list[Category]] = {}
        for category in self.categories:
            words = frozenset(words_of(category.name)) | frozenset(words_of(category.slug))
            _enter(whole, category, words)
            _enter(begun, category, {beginning for word in words for beginning in accumulate(word)})
        self._by_beginning = {beginning: tuple(found) for beginning, found in begun.items()}
        # What a word of a query means: from so many characters up it may be just begun (M5).
        self._meant = {
            text: tuple(category.slug for category in (begun if len(text) >= CATEGORY_PREFIX_MIN else whole)[text])
            for text in (begun.keys() | whole.keys())
            if len(text) >= CATEGORY_PREFIX_MIN or text in whole
        }

    def slugs_of(self, word: str) -> tuple[str, ...]:
        """The slugs of the categories that have a word which this one equals or, from 3 characters up, begins."""
        return self._meant.get(word, ())

    def resolve(self, words: Iterable[str], cap: int, category: str | None = None) -> Resolved:
        """What each word means (M5).

        Args:
            words: folded.
            cap: how many categories a word may mean.
            category: the slug that a search filters by: a word that means it means it whatever its position, and what
                else it means is of no account.
        """
        found = {word: self.slugs_of(word) for word in words}
        return Resolved(
            slugs={word: _taken(slugs, cap, category) for word, slugs in found.items()},
            truncated=any(len(slugs) > cap and category not in slugs for slugs in found.values()),
        )

    def suggested(self, query: QueryForms, limit: int) -> tuple[Category, ...]:
        """The categories that have a word which begins with the query or with its last word (M10)."""
        if not query.texts:
            return self.categories[:limit]
        if not query.words:
            return ()
        # No word begins with several: of a query of one word, the whole and its last word are the same.
        return self._by_beginning.get(query.words[-1], ())[:limit]


def _taken(slugs: tuple[str, ...], cap: int, category: str | None) -> tuple[str, ...]:
    return (*slugs[: cap - 1], category) if category is not None and category in slugs[cap:] else slugs[:cap]


def _enter(table: dict[str, list[Category]], category: Category, texts: Iterable[str]) -> None:
    for text in texts:
        table.setdefault(text, []).append(category)
