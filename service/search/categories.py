"""The table of categories of one stamp, which resolves words to categories without the engine (M5, M10)."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rapidfuzz import fuzz, process

from index_mappings.category_forms import STEM_MARK, stem, stem_term, unfolded
from index_mappings.documents import Category, CategoryEntry, in_category_order
from index_mappings.forms import QueryForms
from index_mappings.ngrams import is_part_evidence
from index_mappings.tiers import CATEGORY_PREFIX_MIN, CATEGORY_RUN, CATEGORY_TYPO_MIN
from service.search.optional_words import JOINING_WORDS
from service.search.query_words import QueryWord, find_forms, runs

# How much of a text is compared with slugs, in characters, and the lowest similarity that counts, of 100: the share of
# the characters of both that are not inserted or deleted.
_COMPARED: Final = 200
_WORDS: Final = 12
_CLOSE: Final = 75


@dataclass(frozen=True, slots=True)
class ResolvedWords:
    """By distinct word, the slugs of the categories that it means, and whether the cap dropped some."""

    slugs: dict[str, tuple[str, ...]]
    truncated: bool


class CategoryTable:
    """All categories of one stamp, in M11's order, indexed by all prefixes of their words.

    Attributes:
        entries: the categories with their words.
        categories: the categories as answers show them.
    """

    def __init__(self, entries: Iterable[CategoryEntry]) -> None:
        """Index the categories, given in any order."""
        self.entries = in_category_order(entries)
        self.categories = tuple(entry.shown() for entry in self.entries)
        # Values are positions in `entries`: ascending positions are in M11's order.
        self._by_word: dict[str, list[int]] = {}
        self._by_prefix: dict[str, list[int]] = {}
        for index, entry in enumerate(self.entries):
            _add(self._by_word, index, entry.words)
            _add(self._by_prefix, index, {word[: end + 1] for word in entry.words for end in range(len(word))})
        self._alone: dict[str, list[int]] = {}
        self._whole: dict[str, list[int]] = {}
        for index, entry in enumerate(self.entries):
            _add(self._alone, index, entry.alone)
            _add(self._whole, index, entry.whole)
        terms = [term.partition(STEM_MARK) for term in self._whole]
        self._languages = tuple(sorted({language for language, mark, _ in terms if mark}))
        self._sorted = sorted(text for text in self._alone if STEM_MARK not in text)
        # A cache of `slugs_of`: only words with a category are stored, so it is not larger than the prefixes.
        self._slugs: dict[str, tuple[str, ...]] = {}
        # By prefix, the characters that can follow it; by second character, the first characters of words with it.
        self._following: dict[str, list[str]] = {}
        self._firsts: dict[str, list[str]] = {}
        for prefix in self._by_prefix:
            if len(prefix) > 1:
                self._following.setdefault(prefix[:-1], []).append(prefix[-1])
            if len(prefix) == 2:  # noqa: PLR2004 - the first and the second character
                self._firsts.setdefault(prefix[1], []).append(prefix[0])

    def slugs_of(self, word: str) -> tuple[str, ...]:
        """The slugs of the categories with a word that equals this one or, from 3 characters, begins with it (M9)."""
        slugs = self._slugs.get(word)
        if slugs is None:
            table = self._by_prefix if len(word) >= CATEGORY_PREFIX_MIN else self._by_word
            if (found := table.get(word)) is None:
                return ()
            slugs = self._slugs[word] = tuple(self.entries[index].slug for index in found)
        return slugs

    def resolve(self, words: Sequence[QueryWord], cap: int, category: str | None = None) -> ResolvedWords:
        """The categories that each word of a query resolves to (M5).

        Args:
            words: of the query, in order.
            cap: the maximum number of categories of a word.
            category: the slug that the search filters by, or None: the cap never drops it, and dropping others does
                not count as truncation, as they cannot change the result.
        """
        found: dict[str, set[int]] = {word.text: set() for word in words}
        for word in words:
            if not word.is_suffix and word.text not in JOINING_WORDS:
                found[word.text].update(self._equal(self._alone, (word.text,), (word,)))
        for start, end in runs(words, CATEGORY_RUN):
            run = words[start:end]
            texts = [word.text for word in run]
            for index in self._equal(self._whole, (" ".join(texts), "".join(texts)), run):
                for text in texts:
                    found[text].add(index)
        for word in words:
            if not found[word.text] and not word.is_suffix and is_part_evidence(word.text):
                found[word.text].update(self._beginning_alone(word.text))
        slugs = {text: tuple(self.entries[index].slug for index in sorted(found[text])) for text in found}
        return ResolvedWords(
            slugs={text: _capped(some, cap, category) for text, some in slugs.items()},
            truncated=any(len(some) > cap and category not in some for some in slugs.values()),
        )

    def _equal(self, table: dict[str, list[int]], texts: Iterable[str], words: Sequence[QueryWord]) -> Iterator[int]:
        """The positions of the categories with one of the texts in a table, or with the stems of the words."""
        for text in texts:
            yield from table.get(text, ())
        raw = [unfolded(word.typed) for word in words]
        for language in self._languages:
            if len(raw) > 1:
                yield from table.get(stem_term(language, [stem(language, text) for text in raw]), ())
            yield from table.get(stem_term(language, [stem(language, "".join(raw))]), ())

    def _beginning_alone(self, text: str) -> Iterator[int]:
        """The positions of the categories with a word, or a joined name, that begins with a text."""
        start = bisect_left(self._sorted, text)
        for known in islice(self._sorted, start, None):
            if not known.startswith(text):
                return
            yield from self._alone[known]

    def closest(self, text: str, limit: int) -> tuple[str, ...]:
        """The slugs of the categories that a text may mean (E4): by its words (M5), most first; then by spelling.

        Args:
            text: instead of a slug; compared up to a length.
            limit: the maximum number of slugs.
        """
        words = find_forms(text[:_COMPARED]).words[:_WORDS]
        means = Counter(slug for slugs in self.resolve(words, len(self.entries)).slugs.values() for slug in slugs)
        slugs = [entry.slug for entry in self.entries]
        meant = sorted((slug for slug in slugs if slug in means), key=lambda slug: -means[slug])
        near = process.extract(text[:_COMPARED], slugs, scorer=fuzz.ratio, score_cutoff=_CLOSE, limit=limit)
        return tuple(dict.fromkeys((*meant[:limit], *(slug for slug, _, _ in near))))[:limit]

    def suggested(self, query: QueryForms, limit: int) -> tuple[Category, ...]:
        """The categories with a word that begins with the query's last word (M10).

        Without such a category: those with a word of which a prefix is one typing error away.
        """
        if not query.texts:
            return self.categories[:limit]
        if not query.words or query.dotted:
            return ()
        # A category's word has no space, so it can begin with the whole query only where that is one word.
        word = query.words[-1]
        found = self._by_prefix.get(word)
        if found is None:
            found = self._misspelt(word) if len(word) >= CATEGORY_TYPO_MIN else []
        return tuple(self.categories[index] for index in found[:limit])

    def _misspelt(self, word: str) -> list[int]:
        """The positions of the categories with a word of which a prefix is one typing error away, ascending."""
        return sorted({index for text in self._corrections(word) for index in self._by_prefix.get(text, ())})

    def _corrections(self, word: str) -> Iterator[str]:
        """A superset of the prefixes of words that are one typing error away from a text.

        The error may be at each position up to which the text is a prefix of a word; wrong and missing characters are
        replaced only by characters that some word has at that position.
        """
        for position in range(len(word)):
            before, rest = word[:position], word[position:]
            if position and before not in self._by_prefix:
                return
            yield before + rest[1:]
            if len(rest) > 1:
                yield before + rest[1] + rest[0] + rest[2:]
            missing = self._following.get(before, ()) if position else self._firsts.get(rest[0], ())
            wrong = missing if position else self._firsts.get(rest[1], ())
            for character in missing:
                yield before + character + rest
            for character in wrong:
                yield before + character + rest[1:]


def _capped(slugs: tuple[str, ...], cap: int, category: str | None) -> tuple[str, ...]:
    return (*slugs[: cap - 1], category) if category is not None and category in slugs[cap:] else slugs[:cap]


def _add(table: dict[str, list[int]], index: int, texts: Iterable[str]) -> None:
    for text in texts:
        table.setdefault(text, []).append(index)
