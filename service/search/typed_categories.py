"""Which categories are suggested for a query that is being typed, by their names (M10).

All tables are computed when a stamp is opened. Categories are positions in M11's order.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from index_mappings.category_forms import Level, LevelledForm, stem, unmarked
from index_mappings.forms import QueryForms
from index_mappings.table_words import SHOP_ENDINGS, TABLE_WORDS
from index_mappings.text import fold, is_ideographic
from index_mappings.tiers import (
    BEGUN_SHOP_WORD_MIN,
    CATEGORY_TYPO_MIN,
    LEFT_MIN,
    LEFT_OTHER_MIN,
    OTHER_NAME_MIN,
    SYNONYM_BEGINNING_MIN,
)
from service.search.category_levels import CategoryLevels

# The maximum number of categories of an answer. Better tiers have fewer, so twice as many of a prefix are enough.
MOST: Final = 20
_ENOUGH: Final = 2 * MOST
# The categories of a prefix of more texts than this are computed in advance.
_SCANNED: Final = 16
# The maximum number of words that are cached with their stems.
_CACHED_WORDS: Final = 8_192
_NONE: Final[tuple[int, ...]] = ()
# After each character of a text.
_LAST: Final = chr(0x10FFFF)

# Table words as names have them.
_FOLDED_TABLE_WORDS: Final = frozenset(map(fold, TABLE_WORDS))
_BEGUN_SHOP_WORDS: Final = frozenset(
    word[:end] for word in SHOP_ENDINGS for end in range(BEGUN_SHOP_WORD_MIN, len(word) + 1)
)


class _Reading(NamedTuple):
    """Some words of a query, folded and with their marks.

    `whole` compares them with whole names only; `own` with those, and with beginnings and words of own names.
    """

    words: tuple[str, ...]
    marked: tuple[str, ...]
    whole: bool = False
    own: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The texts that names begin with, spaced and joined."""
        words = self.words
        return words if len(words) == 1 else (" ".join(words), "".join(words))

    def has_letters(self, least: int) -> bool:
        """Whether it has this many letters, or one of a script in which one is enough."""
        text = "".join(self.words)
        return len(text) >= least or is_ideographic(text)

    def part(self, start: int, stop: int | None = None) -> "_Reading":
        return _Reading(self.words[start:stop], self.marked[start:stop])


class TypedCategories:
    """The names of categories, by which a query that is being typed finds them."""

    def __init__(self, names: Iterable[Sequence[str]], levels: CategoryLevels) -> None:
        """Index the terms of `category_forms` of each category; `levels` has the same ones."""
        texts: dict[Level, dict[str, list[int]]] = {level: {} for level in Level}
        own: list[_NameOfSeveral] = []
        others: list[_NameOfSeveral] = []
        for position, terms in enumerate(names):
            forms = [LevelledForm.from_term(term) for term in terms]
            counted = frozenset(form.text for form in forms if form.level is Level.WORD)
            for level, text, language in forms:
                if language is None:
                    texts[level].setdefault(text, []).append(position)
                if level.names and " " in text:
                    (own if level is Level.OWN else others).append(_NameOfSeveral(position, text, language, counted))
        self._levels = levels
        self._own = _Beginnings(texts[Level.OWN])
        self._other = _Beginnings(texts[Level.OTHER_LANGUAGE])
        self._synonyms = _Beginnings(texts[Level.SYNONYM])
        self._in_own, self._in_others = _WordsOfNames(own), _WordsOfNames(others)
        self._typos = _Typos((*texts[Level.OWN], *texts[Level.OTHER_LANGUAGE]))

    def of(self, query: QueryForms, limit: int) -> Sequence[int]:
        """The categories of a query with words, the best first, at most `limit`, which is at most MOST."""
        readings, goods = _readings(query)
        for reading in readings:
            if found := self._by_tiers(reading, limit):
                return found
        for reading in goods:
            for start in range(1, len(reading.words)):
                last = reading.part(start)
                if last.has_letters(LEFT_MIN) and (
                    found := self._by_names(last, others=last.has_letters(LEFT_OTHER_MIN))
                ):
                    return list(found)[:limit]
        for reading in readings:
            if found := self._with_typo(reading, limit):
                return found
        return ()

    def _by_names(self, reading: _Reading, *, others: bool = True) -> dict[int, None]:
        """The categories of the tiers (6) to (3), in order; without those of other names than own ones if so said."""
        meaning = self._levels.of_run(reading.words, reading.marked)
        is_own = meaning.level is Level.OWN
        found: dict[int, None] = dict.fromkeys(sorted(meaning.positions)) if is_own else {}
        begun = () if reading.whole else self._own.of_any(reading.keys)
        if begun:
            _append(found, self._own.of_any([f"{key} " for key in reading.keys]))
        if others and not is_own:
            _append(found, meaning.positions)
        _append(found, begun)
        return found

    def _by_tiers(self, reading: _Reading, limit: int) -> Sequence[int]:
        found = self._by_names(reading)
        if not reading.whole and len(found) < limit:
            second = self._in_own.of(reading)
            if not reading.own and reading.has_letters(OTHER_NAME_MIN):
                second += self._other.of_any(reading.keys)
            _append(found, second)
            if len(found) < limit and not reading.own and reading.has_letters(SYNONYM_BEGINNING_MIN):
                _append(found, self._synonyms.of_any(reading.keys) + self._in_others.of(reading))
        return list(found)[:limit]

    def _with_typo(self, reading: _Reading, limit: int) -> Sequence[int]:
        if reading.whole:
            return ()
        found: set[int] = set()
        for key in reading.keys:
            if len(key) >= CATEGORY_TYPO_MIN:
                for text in self._typos.near(key):
                    found.update(self._own.of(text), self._other.of(text))
        return sorted(found)[:limit]


def _readings(query: QueryForms) -> tuple[list[_Reading], list[_Reading]]:
    """The readings of a query in order, and those of them that have no table words.

    As typed; without table words; and without a last word that begins a word for a shop.
    """
    words, marked = query.words, query.marked or query.words
    typed = _Reading(words, marked)
    if TABLE_WORDS.isdisjoint(marked):
        left, goods = typed, [typed]
        readings = goods if len(words) == 1 else [typed]
    else:
        kept = [place for place, one in enumerate(marked) if one not in TABLE_WORDS]
        left = _with_letters(tuple([words[place] for place in kept]), tuple([marked[place] for place in kept]))
        # Joined with a table word, a letter or two are not the beginning of a name: `c&a` is not a car.
        if left.whole and len(words) > 1:
            typed = typed._replace(whole=True)
        goods = [left] if kept else []
        readings = [typed, *goods]
    if len(left.words) > 1 and left.words[-1] in _BEGUN_SHOP_WORDS:
        shorter = _with_letters(left.words[:-1], left.marked[:-1])
        return [*readings, shorter], [*goods, shorter]
    return readings, goods


def _with_letters(words: tuple[str, ...], marked: tuple[str, ...]) -> _Reading:
    reading = _Reading(words, marked)
    return _Reading(words, marked, whole=not reading.has_letters(LEFT_MIN), own=not reading.has_letters(LEFT_OTHER_MIN))


def _append(found: dict[int, None], positions: Iterable[int]) -> None:
    for position in sorted(positions):
        found.setdefault(position)


class _Beginnings:
    """Texts, each with the categories that have it, found by their prefixes."""

    def __init__(self, found: Mapping[str, Iterable[int]]) -> None:
        self._texts = sorted(found)
        self._positions = [tuple(sorted(set(found[text]))) for text in self._texts]
        # The categories of prefixes of many texts.
        self._frequent: dict[str, tuple[int, ...]] = {}
        ranges = [(0, len(self._texts), 0)]
        while ranges:
            ranges += self._divided(*ranges.pop())

    def _divided(self, first: int, stop: int, length: int) -> Iterator[tuple[int, int, int]]:
        """The ranges of many texts with one more character in common, after their categories have been stored."""
        texts = self._texts
        at = first + (first < stop and len(texts[first]) == length)
        while at < stop:
            prefix = texts[at][: length + 1]
            end = bisect_left(texts, prefix + _LAST, at, stop)
            if end - at > _SCANNED:
                known = sorted({one for positions in self._positions[at:end] for one in positions})
                self._frequent[prefix] = tuple(known[:_ENOUGH])
                yield at, end, length + 1
            at = end

    def of(self, prefix: str) -> tuple[int, ...]:
        """The categories of all texts that begin so, or the first _ENOUGH of them; some may be repeated."""
        known = self._frequent.get(prefix)
        if known is not None:
            return known
        texts, found = self._texts, _NONE
        at = bisect_left(texts, prefix)
        while at < len(texts) and texts[at].startswith(prefix):
            found += self._positions[at]
            at += 1
        return found

    def of_any(self, prefixes: Sequence[str]) -> tuple[int, ...]:
        """The categories of one or two prefixes."""
        found = self.of(prefixes[0])
        return found if len(prefixes) == 1 else found + self.of(prefixes[1])


class _NameOfSeveral(NamedTuple):
    """A name of several words, or the stems of its words in a language, of the category at a position.

    Table words do not count but those in `counted`, which are another word in the name (`thé`).
    """

    position: int
    text: str
    language: str | None
    counted: frozenset[str]

    def words(self) -> frozenset[str]:
        """The words that count, or the stems as they are typed without marks."""
        words = self.text.split()
        if self.language is not None:
            return frozenset(map(fold, words))
        return frozenset(word for word in words if word in self.counted or word not in _FOLDED_TABLE_WORDS)

    def known_by(self) -> Iterable[str]:
        """The keys that a word of a query has which equals one of these."""
        if self.language is None:
            return self.words()
        words = self.text.split()
        return {key for word in words for key in (f"{self.language}:{word}", f"{self.language}!{unmarked(word)}")}


class _WordsOfNames:
    """Names of several words, found by words of which all but the last are whole."""

    def __init__(self, names: Sequence[_NameOfSeveral]) -> None:
        by_word: dict[str, list[int]] = {}
        begun: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            for key in name.known_by():
                by_word.setdefault(key, []).append(number)
            for word in name.words() if name.language is None else ():
                begun.setdefault(word, []).append(name.position)
        self._positions = [name.position for name in names]
        self._words = [tuple(sorted(name.words())) for name in names]
        self._by_word = {key: tuple(numbers) for key, numbers in by_word.items()}
        self._begun = _Beginnings(begun)
        self._languages = tuple(sorted({name.language for name in names if name.language is not None}))
        # A cache of `_keys_of`.
        self._keys: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, reading: _Reading) -> tuple[int, ...]:
        """The categories with a name that has all words, and of which a word begins with the last."""
        words = reading.words
        last = words[-1]
        if len(words) == 1:
            return self._begun.of(last)
        names: set[int] | None = None
        for word, marked in zip(words[:-1], reading.marked, strict=False):
            with_word = {number for key in self._keys_of(word, marked) for number in self._by_word[key]}
            names = with_word if names is None else names & with_word
            if not names:
                return _NONE
        return tuple([
            self._positions[number]
            for number in names or ()
            if any(word.startswith(last) for word in self._words[number])
        ])  # fmt: skip

    def _keys_of(self, word: str, marked: str) -> tuple[str, ...]:
        """The keys of a word that some name has: the word, and its stems in all languages."""
        keys = self._keys.get((word, marked))
        if keys is None:
            mark = "!" if unmarked(marked) == marked else ":"
            stems = (f"{language}{mark}{stem(language, marked)}" for language in self._languages)
            keys = tuple([key for key in (word, *stems) if key in self._by_word])
            if len(self._keys) >= _CACHED_WORDS:
                self._keys.clear()
            self._keys[word, marked] = keys
        return keys


class _Typos:
    """The prefixes of texts, found by texts that are one typing error away from one of them."""

    def __init__(self, texts: Iterable[str]) -> None:
        # By prefix, the characters that can follow it; by second character, the first characters of texts with it.
        self._following: dict[str, str] = {}
        for prefix, character in {(text[:end], text[end : end + 1]) for text in texts for end in range(len(text) + 1)}:
            self._following[prefix] = self._following.get(prefix, "") + character
        self._firsts: dict[str, str] = {}
        for prefix in self._following:
            if len(prefix) == 2:  # noqa: PLR2004 - the first and the second character
                self._firsts[prefix[1]] = self._firsts.get(prefix[1], "") + prefix[0]

    def near(self, text: str) -> Iterator[str]:
        """The prefixes that are at most one typing error away from a text; some may be repeated."""
        known = self._following
        return (one for one in self._corrections(text) if one in known)

    def _corrections(self, text: str) -> Iterator[str]:
        """A superset: the error may be at each position up to which the text is a prefix of a known one.

        Wrong and missing characters are replaced only by characters that some text has at that position.
        """
        for position in range(len(text)):
            before, rest = text[:position], text[position:]
            if before not in self._following:
                return
            yield before + rest[1:]
            if len(rest) > 1:
                yield before + rest[1] + rest[0] + rest[2:]
            missing = self._following[before] if position else self._firsts.get(rest[0], "")
            wrong = missing if position else self._firsts.get(rest[1], "")
            for character in missing:
                yield before + character + rest
            for character in wrong:
                yield before + character + rest[1:]
