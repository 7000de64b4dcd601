"""The table of categories of one stamp, which resolves words to categories without the engine (M5, M10)."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process

from index_mappings.category_forms import Level
from index_mappings.documents import Category, CategoryEntry, in_category_order
from index_mappings.forms import QueryForms
from index_mappings.table_words import SHOP_WORDS, unfolded
from index_mappings.tiers import CATEGORY_PREFIX_MIN, CATEGORY_RUN
from shop_directory.words.category_levels import NOTHING_MEANT, CategoryLevels, Meaning
from shop_directory.words.query_words import QueryWord, find_forms, runs
from shop_directory.words.typed_categories import TypedCategories

# How many characters of a text are compared with slugs, and the least similarity that counts, of 100.
_COMPARED: Final = 200
_WORDS: Final = 12
_CLOSE: Final = 75
# The maximum number of words that are cached with their categories.
_CACHED_WORDS: Final = 8_192


class WordMeaning(NamedTuple):
    """The slugs of the categories that a word means, and their level."""

    slugs: tuple[str, ...]
    level: Level

    @property
    def named(self) -> bool:
        """Whether it names a category, alone or with its neighbours (M5)."""
        return bool(self.slugs) and self.level.names

    @property
    def is_wish(self) -> bool:
        """Whether it means a category by a whole word: what only begins a name's word may be part of another (M3)."""
        return bool(self.slugs) and self.level is not Level.BEGINNING


class ResolvedWords(NamedTuple):
    """By distinct word, the categories that it means, and whether the cap dropped some."""

    words: dict[str, WordMeaning]
    truncated: bool


class CategoryTable:
    """All categories of one stamp, in M11's order; `categories` are `entries` as answers show them."""

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
        self._levels = CategoryLevels(entry.names for entry in self.entries)
        self._typed = TypedCategories((entry.names for entry in self.entries), self._levels)
        # A cache of the levels of single words.
        self._words: dict[tuple[str, str], Meaning] = {}
        # A cache of `slugs_of`: only words with a category are stored, so it is not larger than the prefixes.
        self._slugs: dict[str, tuple[str, ...]] = {}

    def slugs_of(self, word: str) -> tuple[str, ...]:
        """The slugs of the categories with a word that equals this one or, from 3 characters, begins with it (M9)."""
        slugs = self._slugs.get(word)
        if slugs is None:
            table = self._by_prefix if len(word) >= CATEGORY_PREFIX_MIN else self._by_word
            if (found := table.get(word)) is None:
                return ()
            slugs = self._slugs[word] = tuple(self.entries[index].slug for index in found)
        return slugs

    def resolve(self, words: Sequence[QueryWord], cap: int, filtered: Collection[str] = ()) -> ResolvedWords:
        """The categories that each word of a reading of a query resolves to (M5), at most `cap` for each word.

        The words of a run that names a category have its categories, the longest run first; a table word has others
        only so. `filtered` are the slugs that the search filters by: the cap never drops them, and where a word means
        all of them, dropping others does not count as truncation, as they cannot change the result.
        """
        found: dict[str, Meaning] = {}
        in_runs = self._of_runs(words) if len(words) > 1 else {}
        for place, word in enumerate(words):
            if (meaning := in_runs.get(place)) is None:
                meaning = NOTHING_MEANT if word.is_table or word.is_suffix else self._of_word(word)
            found[word.text] = _better(found.get(word.text), meaning)
        slugs = {text: self._slugs_at(meaning.positions) for text, meaning in found.items()}
        truncated = any(len(some) > cap and not (filtered and set(filtered) <= set(some)) for some in slugs.values())
        return ResolvedWords(
            {text: WordMeaning(_capped(slugs[text], cap, filtered), meaning.level) for text, meaning in found.items()},
            truncated,
        )

    def _of_word(self, word: QueryWord) -> Meaning:
        key = word.text, word.typed
        meaning = self._words.get(key)
        if meaning is None:
            meaning = self._levels.of_word(word.text, unfolded(word.typed))
            if len(self._words) >= _CACHED_WORDS:
                self._words.clear()
            self._words[key] = meaning
        return meaning

    def _of_runs(self, words: Sequence[QueryWord]) -> dict[int, Meaning]:
        """By place, the categories that its word names together with neighbours, in no more than one run."""
        found: dict[int, Meaning] = {}
        texts = [word.text for word in words]
        typed = [unfolded(word.typed) for word in words]
        tables = [word.is_table for word in words]
        several = [(start, end) for start, end in runs(words, CATEGORY_RUN) if end - start > 1]
        for start, end in sorted(several, key=lambda bounds: bounds[0] - bounds[1]):
            is_table = all(tables[start:end])
            # `can i` does not mean Italian dogs.
            if found.keys().isdisjoint(range(start, end)) and (not is_table or all(tables)):
                meaning = self._levels.of_run(texts[start:end], typed[start:end])
                # The other words have these categories as well, or better ones: `coffee shop` is not `coffeeshop`.
                if (
                    meaning.level > Level.OTHER_LANGUAGE
                    and not is_table
                    and not SHOP_WORDS.isdisjoint(typed[start:end])
                ):
                    continue
                if meaning.positions:
                    found.update(dict.fromkeys(range(start, end), meaning))
        return found

    def _slugs_at(self, positions: frozenset[int]) -> tuple[str, ...]:
        return tuple([self.entries[index].slug for index in sorted(positions)]) if positions else ()

    def closest(self, text: str, limit: int) -> tuple[str, ...]:
        """The slugs of the categories that a text may mean (E4): by its words (M5), most first; then by spelling."""
        words = find_forms(text[:_COMPARED]).words[:_WORDS]
        means = Counter(slug for word in self.resolve(words, len(self.entries)).words.values() for slug in word.slugs)
        slugs = [entry.slug for entry in self.entries]
        meant = sorted((slug for slug in slugs if slug in means), key=lambda slug: -means[slug])
        near = process.extract(text[:_COMPARED], slugs, scorer=fuzz.ratio, score_cutoff=_CLOSE, limit=limit)
        return tuple(dict.fromkeys((*meant[:limit], *(slug for slug, _, _ in near))))[:limit]

    def suggested(self, query: QueryForms, limit: int) -> tuple[Category, ...]:
        """The categories of a query that is being typed (M10), at most `limit` (1 to 20)."""
        if not query.texts:
            return self.categories[:limit]
        if not query.words or query.dotted:
            return ()
        return tuple([self.categories[index] for index in self._typed.of(query, limit)])


def _better(first: Meaning | None, second: Meaning) -> Meaning:
    """The better level of two places of a word; both where they are equal."""
    if first is None or (second.positions and (not first.positions or second.level < first.level)):
        return second
    if second.positions and second.level == first.level:
        return Meaning(first.level, first.positions | second.positions)
    return first


def _capped(slugs: tuple[str, ...], cap: int, filtered: Collection[str]) -> tuple[str, ...]:
    if not filtered or len(slugs) <= cap:
        return slugs[:cap]
    kept = [slug for slug in slugs if slug in filtered]
    return (*[slug for slug in slugs if slug not in kept][: max(0, cap - len(kept))], *kept)


def _add(table: dict[str, list[int]], index: int, texts: Iterable[str]) -> None:
    for text in texts:
        table.setdefault(text, []).append(index)
