"""Which categories a word means, answered from the categories of one stamp, without asking the engine (M5, M10)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from index_mappings.documents import Category, CategoryEntry, in_category_order
from index_mappings.forms import QueryForms
from index_mappings.tiers import CATEGORY_PREFIX_MIN, CATEGORY_TYPO_MIN


@dataclass(frozen=True, slots=True)
class Resolved:
    """The slugs that a query's words mean, word by word, and whether the cap left some out."""

    slugs: dict[str, tuple[str, ...]]
    truncated: bool


class CategoryTable:
    """All categories of one stamp, in M11's order, with all beginnings of their words.

    Attributes:
        entries: the categories with their words.
        categories: what answers show of them.
    """

    def __init__(self, entries: Iterable[CategoryEntry]) -> None:
        """Index the categories, which may come in any order."""
        self.entries = in_category_order(entries)
        self.categories = tuple(entry.shown() for entry in self.entries)
        # By number, as `entries` counts them: ascending numbers are in M11's order.
        self._by_word: dict[str, list[int]] = {}
        self._by_beginning: dict[str, list[int]] = {}
        for number, entry in enumerate(self.entries):
            _enter(self._by_word, number, entry.words)
            _enter(self._by_beginning, number, {word[: end + 1] for word in entry.words for end in range(len(word))})
        # The slugs that words of queries meant: only those that mean some, so there are no more than beginnings.
        self._meant: dict[str, tuple[str, ...]] = {}
        # What may follow each beginning, and what may come before a second character.
        self._following: dict[str, list[str]] = {}
        self._firsts: dict[str, list[str]] = {}
        for beginning in self._by_beginning:
            if len(beginning) > 1:
                self._following.setdefault(beginning[:-1], []).append(beginning[-1])
            if len(beginning) == 2:  # noqa: PLR2004 - the first and the second character
                self._firsts.setdefault(beginning[1], []).append(beginning[0])

    def slugs_of(self, word: str) -> tuple[str, ...]:
        """The slugs of the categories that have a word which this one equals or, from 3 characters up, begins."""
        slugs = self._meant.get(word)
        if slugs is None:
            known = self._by_beginning if len(word) >= CATEGORY_PREFIX_MIN else self._by_word
            if (found := known.get(word)) is None:
                return ()
            slugs = self._meant[word] = tuple(self.entries[number].slug for number in found)
        return slugs

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
        """The categories that have a word which begins with the query or with its last word (M10).

        Where there are none, those of which a word's beginning is one typing error away.
        """
        if not query.texts:
            return self.categories[:limit]
        if not query.words:
            return ()
        # No word begins with several: of a query of one word, the whole and its last word are the same.
        word = query.words[-1]
        found = self._by_beginning.get(word)
        if found is None:
            found = self._misspelt(word) if len(word) >= CATEGORY_TYPO_MIN else []
        return tuple(self.categories[number] for number in found[:limit])

    def _misspelt(self, word: str) -> list[int]:
        """The numbers of the categories with a word of which a beginning is one typing error away, ascending."""
        begun = self._by_beginning
        return sorted({number for text in self._corrections(word) for number in begun.get(text, ())})

    def _corrections(self, word: str) -> Iterator[str]:
        """All beginnings of words that are one typing error away from a text, and other texts.

        The error may be at each place up to which the text begins a word; a wrong or missing character is only sought
        among those that words have there.
        """
        for place in range(len(word)):
            before, rest = word[:place], word[place:]
            if place and before not in self._by_beginning:
                return
            yield before + rest[1:]
            if len(rest) > 1:
                yield before + rest[1] + rest[0] + rest[2:]
            missing = self._following.get(before, ()) if place else self._firsts.get(rest[0], ())
            wrong = missing if place else self._firsts.get(rest[1], ())
            for character in missing:
                yield before + character + rest
            for character in wrong:
                yield before + character + rest[1:]


def _taken(slugs: tuple[str, ...], cap: int, category: str | None) -> tuple[str, ...]:
    return (*slugs[: cap - 1], category) if category is not None and category in slugs[cap:] else slugs[:cap]


def _enter(table: dict[str, list[int]], number: int, texts: Iterable[str]) -> None:
    for text in texts:
        table.setdefault(text, []).append(number)
