"""Which categories are suggested for a query that is being typed, by their names (M10).

All tables are computed when a stamp is opened. Categories are positions in M11's order.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from index_mappings.category_forms import Level, LevelledForm, unmarked
from index_mappings.forms import QueryForms
from index_mappings.table_words import SHOP_ENDINGS, SHOP_WORDS, TABLE_WORDS
from index_mappings.text import fold, is_ideographic
from index_mappings.tiers import (
    BEGUN_SHOP_WORD_MIN,
    CATEGORY_TYPO_MIN,
    LEFT_MIN,
    LEFT_OTHER_MIN,
    OTHER_NAME_MIN,
    SYNONYM_BEGINNING_MIN,
)
from shop_directory.words.category_levels import NOT_STEMMED, CategoryLevels, Stemmed
from shop_directory.words.known_stems import KnownStems

# The maximum number of categories of an answer. Better tiers have fewer, so twice as many of a prefix are enough.
MOST: Final = 20
_ENOUGH: Final = 2 * MOST
# The categories of a prefix of more texts than this are computed in advance.
_SCANNED: Final = 6
# Known prefixes, up to the first length and of the second: most texts that begin nothing are not searched for.
_HEAD, _LONG_HEAD = 5, 8
# The lengths of the prefixes of which it is known whether they are near to a name.
_NEAR: Final = (CATEGORY_TYPO_MIN, CATEGORY_TYPO_MIN + 2)
_NONE: Final[frozenset[int]] = frozenset()
# The kinds of texts: whole names, and words of names of several. By kind, categories.
_OWN, _OTHER, _SYNONYM, _OWN_WORD, _OTHER_WORD = range(5)
_Begun = Sequence[Sequence[int]]
_NOTHING: Final[_Begun] = ((), (), (), (), ())
# After each character of a text.
_LAST: Final = chr(0x10FFFF)

# Table words as names have them.
_FOLDED_TABLE_WORDS: Final = frozenset(map(fold, TABLE_WORDS))
_BEGUN_SHOP_WORDS: Final = frozenset(
    word[:end] for word in SHOP_ENDINGS for end in range(BEGUN_SHOP_WORD_MIN, len(word) + 1)
)


class _Reading(NamedTuple):
    """Some words of a query, folded and with their marks, and the texts that names begin with, spaced and joined.

    `whole` compares them with whole names only; `own` with those, and with beginnings and words of own names. Whole
    names that are not own ones count only if it is `named`.
    """

    words: tuple[str, ...]
    marked: tuple[str, ...]
    keys: tuple[str, ...]
    whole: bool = False
    own: bool = False
    named: bool = True

    @classmethod
    def of(cls, words: tuple[str, ...], marked: tuple[str, ...]) -> "_Reading":
        return cls(words, marked, _keys(words))

    def has_letters(self, least: int) -> bool:
        """Whether it has this many letters, or one of a script in which one is enough."""
        text = self.keys[-1]
        return len(text) >= least or is_ideographic(text)


def _keys(words: tuple[str, ...]) -> tuple[str, ...]:
    return words if len(words) == 1 else (" ".join(words), "".join(words))


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
        self._names = _Beginnings()
        for kind, level in ((_OWN, Level.OWN), (_OTHER, Level.OTHER_LANGUAGE), (_SYNONYM, Level.SYNONYM)):
            self._names.add(kind, texts[level])
        self._in_own, self._in_others = _WordsOfNames(own), _WordsOfNames(others)
        self._names.add(_OWN_WORD, self._in_own.beginnings)
        self._names.add(_OTHER_WORD, self._in_others.beginnings)
        self._names.complete()
        self._begun_own = _by_prefix(texts[Level.OWN])
        self._wholes = KnownStems(
            (language, text)
            for _, language, known in levels.stems_of_names()
            for table in (known.marked, known.plain)
            for text in table
            if " " not in text
        )
        self._parts = KnownStems((*self._in_own.stems(), *self._in_others.stems()))
        self._typos = _Typos((*texts[Level.OWN], *texts[Level.OTHER_LANGUAGE]))
        # The categories of words that begin many texts.
        self._frequent: dict[str, Sequence[int]] = {}
        for text in self._names.frequent:
            reading = _Reading.of((text,), (text,))
            self._frequent[text] = tuple(self._found(reading, self._by_names(reading, others=True), MOST))

    def of(self, query: QueryForms, limit: int) -> Sequence[int]:
        """The categories of a query with words, the best first, at most `limit`, which is at most MOST."""
        words, marked = query.words, query.marked or query.words
        if len(words) == 1:
            # The most frequent case: one word, which finds nothing but by a typing error.
            if not query.marked and (known := self._frequent.get(words[0])) is not None:
                return known[:limit]
            if marked[0] not in TABLE_WORDS and not self._may_find(words, marked):
                return self._with_typo(words, limit)
        elif not self._may_find_any(words, marked):
            return self._with_typo(_keys(words), limit)
        readings, goods = _readings(query)
        for reading in readings:
            if not self._may_find(reading.words, reading.marked):
                continue
            by_names = self._by_names(reading, others=reading.named)
            if found := self._found(reading, by_names, limit):
                return found
        for reading in goods:
            if found := self._of_last_words(reading, limit):
                return found
        for reading in readings:
            if not reading.whole and (found := self._with_typo(reading.keys, limit)):
                return found
        return ()

    def _of_last_words(self, reading: _Reading, limit: int) -> Sequence[int]:
        """The categories of the longest run of a reading's last words, but not all of them, that finds any."""
        for start in range(1, len(reading.words)):
            words, marked = reading.words[start:], reading.marked[start:]
            if self._may_find(words, marked):
                last = _Reading.of(words, marked)
                if last.has_letters(LEFT_MIN) and (
                    found := self._by_names(last, others=last.has_letters(LEFT_OTHER_MIN))
                ):
                    return list(found)[:limit]
        return ()

    def _may_find_any(self, words: tuple[str, ...], marked: tuple[str, ...]) -> bool:
        """Whether a query has table words, or some of its last words may find a category without a typing error."""
        if not TABLE_WORDS.isdisjoint(marked) or words[-1] in _BEGUN_SHOP_WORDS:
            return True
        return any(self._may_find(words[start:], marked[start:]) for start in range(len(words)))

    def _may_find(self, words: tuple[str, ...], marked: tuple[str, ...]) -> bool:
        """Whether a name may begin with some words or have their stems: most words of names of shops do neither."""
        if len(words) == 1:
            return self._names.may_begin(words[0]) or bool(self._wholes.of(marked[0]))
        return bool(
            self._parts.of(marked[0])
            or self._names.may_begin("".join(words))
            or self._in_own.has(words[0])
            or self._in_others.has(words[0])
            or self._wholes.of("".join(marked))
        )

    def _by_names(self, reading: _Reading, *, others: bool) -> dict[int, None]:
        """The categories of the tiers (6) to (3), in order; without those of other names than own ones if so said."""
        found: dict[int, None] = {}
        keys = reading.keys
        stemmed = self._stemmed(reading.marked)
        # Each spaced name is also there joined.
        if stemmed is NOT_STEMMED and not self._names.may_begin(keys[-1]):
            return found
        meaning = self._levels.named(keys, stemmed)
        if meaning.level is Level.OWN:
            _append(found, meaning.positions)
        own = _NONE if reading.whole else [position for key in keys for position in self._begun_own.get(key, ())]
        if own:
            for key in keys:
                _append(found, self._begun_own.get(f"{key} ", ()))
        if others and meaning.positions:
            _append(found, meaning.positions)
        if own:
            _append(found, own)
        return found

    def _stemmed(self, marked: Sequence[str]) -> Stemmed:
        """The categories with a name that has the stems of all words, or of their joined text."""
        several = len(marked) > 1
        joined = self._wholes.of("".join(marked) if several else marked[0])
        first = self._parts.of(marked[0]) if several else joined
        if not joined and not first:
            return NOT_STEMMED
        stemmed = list(joined.items())
        if several and first and all(each := [first, *map(self._parts.of, marked[1:])]):
            shared = [language for language in first if all(language in one for one in each)]
            stemmed += [(language, " ".join([one[language] for one in each])) for language in shared]
        return self._levels.with_stems(stemmed, marked) if stemmed else NOT_STEMMED

    def _found(self, reading: _Reading, found: dict[int, None], limit: int) -> Sequence[int]:
        """The categories of all tiers, those of (6) to (3) given."""
        if reading.whole or len(found) >= limit:
            return list(found)[:limit]
        joined, alone = self._names.of(reading.keys[-1]), len(reading.keys) == 1
        begun = [joined] if alone or joined is _NOTHING else [self._names.of(reading.keys[0]), joined]
        first = reading.words[0]
        # Whether some name of several words may have the first word.
        is_part = not alone and bool(
            self._parts.of(reading.marked[0]) or self._in_own.has(first) or self._in_others.has(first)
        )
        if not is_part and joined is _NOTHING:
            return list(found)
        second = list(begun[0][_OWN_WORD] if alone else self._in_own.of(reading, self._parts) if is_part else ())
        others = not reading.own and reading.has_letters(OTHER_NAME_MIN)
        if others:
            for one in begun:
                second += one[_OTHER]
        if second:
            _append(found, second)
        if len(found) < limit and others and reading.has_letters(SYNONYM_BEGINNING_MIN):
            third = list(
                begun[0][_OTHER_WORD] if alone else self._in_others.of(reading, self._parts) if is_part else ()
            )
            for one in begun:
                third += one[_SYNONYM]
            if third:
                _append(found, third)
        return list(found)[:limit]

    def _with_typo(self, keys: Sequence[str], limit: int) -> Sequence[int]:
        found: set[int] = set()
        for key in reversed(keys):
            if len(key) >= CATEGORY_TYPO_MIN:
                # What is near to a spaced name is near to the joined one.
                if not (near := self._typos.near(key)):
                    break
                for text in near:
                    begun = self._names.of(text)
                    found.update(begun[_OWN], begun[_OTHER])
        return sorted(found)[:limit]


def _readings(query: QueryForms) -> tuple[list[_Reading], list[_Reading]]:
    """The readings of a query in order, and those of them that have no table words.

    As typed; without table words; and without a last word that begins a word for a shop.
    """
    words, marked = query.words, query.marked or query.words
    typed = _Reading.of(words, marked)
    if TABLE_WORDS.isdisjoint(marked):
        left, readings = typed, [typed]
        goods = readings
    else:
        kept = [place for place, one in enumerate(marked) if one not in TABLE_WORDS]
        left = _with_letters(tuple([words[place] for place in kept]), tuple([marked[place] for place in kept]))
        # Next to table words but those for a shop, a short word more often begins a shop's name: `new bal`.
        if left.own and SHOP_WORDS.isdisjoint(marked):
            left = left._replace(named=False)
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
    reading = _Reading.of(words, marked)
    if reading.has_letters(LEFT_OTHER_MIN):
        return reading
    return reading._replace(whole=not reading.has_letters(LEFT_MIN), own=True)


def _append(found: dict[int, None], positions: Iterable[int]) -> None:
    for position in sorted(positions):
        found.setdefault(position)


class _Beginnings:
    """Texts of five kinds, each with the categories that have it, found by their prefixes."""

    def __init__(self) -> None:
        self._added: dict[str, list[tuple[int, int]]] = {}
        self._texts: list[str] = []
        self._entries: list[tuple[tuple[int, int], ...]] = []
        self._heads: set[str] = set()
        # The categories of prefixes of many texts.
        self.frequent: dict[str, _Begun] = {}

    def add(self, kind: int, found: Mapping[str, Iterable[int]]) -> None:
        """Add the texts of a kind, with the positions of their categories."""
        for text, positions in found.items():
            self._added.setdefault(text, []).extend((kind, position) for position in sorted(set(positions)))

    def complete(self) -> None:
        """Sort the added names."""
        self._texts = sorted(self._added)
        self._entries = [tuple(self._added[text]) for text in self._texts]
        self._heads = {text[:size] for text in self._texts for size in (*range(1, _HEAD + 1), _LONG_HEAD)}
        self._added = {}
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
                known = _by_kind(self._entries[at:end])
                self.frequent[prefix] = tuple([tuple(sorted(set(one))[:_ENOUGH]) for one in known])
                yield at, end, length + 1
            at = end

    def may_begin(self, prefix: str) -> bool:
        """Whether a text may begin so."""
        return prefix[: _HEAD if len(prefix) < _LONG_HEAD else _LONG_HEAD] in self._heads

    def of(self, prefix: str) -> _Begun:
        """By kind, the categories of all texts that begin so, or the first _ENOUGH of them; some may be repeated."""
        known = self.frequent.get(prefix)
        if known is not None:
            return known
        if not self.may_begin(prefix):
            return _NOTHING
        texts = self._texts
        first = at = bisect_left(texts, prefix)
        while at < len(texts) and texts[at].startswith(prefix):
            at += 1
        return _by_kind(self._entries[first:at]) if at > first else _NOTHING


def _by_kind(entries: Iterable[Iterable[tuple[int, int]]]) -> _Begun:
    found: tuple[list[int], ...] = ([], [], [], [], [])
    for some in entries:
        for kind, position in some:
            found[kind].append(position)
    return found


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

    def known_by(self) -> Iterable[tuple[str | None, str]]:
        """The words of a query that equal one of these, or their stems after the language, with and without marks."""
        if self.language is None:
            return [(None, word) for word in self.words()]
        return {(self.language, one) for word in self.text.split() for one in (word, unmarked(word))}


class _WordsOfNames:
    """Names of several words, found by words of which all but the last are whole."""

    def __init__(self, names: Sequence[_NameOfSeveral]) -> None:
        by_word: dict[str | None, dict[str, list[int]]] = {None: {}}
        # The words that count with the categories of their names.
        self.beginnings: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            for language, key in name.known_by():
                by_word.setdefault(language, {}).setdefault(key, []).append(number)
            for word in name.words() if name.language is None else ():
                self.beginnings.setdefault(word, []).append(name.position)
        self._positions = [name.position for name in names]
        # Each word after a space.
        self._texts = ["".join([f" {word}" for word in name.words()]) for name in names]
        self._by_word = by_word

    def stems(self) -> Iterator[tuple[str, str]]:
        """The stems of words, each after its language."""
        for language, known in self._by_word.items():
            if language is not None:
                yield from ((language, text) for text in known)

    def has(self, word: str) -> bool:
        """Whether a name has this word."""
        return word in self._by_word[None]

    def of(self, reading: _Reading, parts: KnownStems) -> Iterable[int]:
        """The categories with a name that has all words, and of which a word begins with the last."""
        names: set[int] | None = None
        for word, marked in zip(reading.words[:-1], reading.marked, strict=False):
            known = self._by_word[None].get(word)
            stems = parts.of(marked)
            if known is None and not stems:
                return _NONE
            with_word = set(known or ())
            for language, one in stems.items():
                with_word.update(self._by_word.get(language, {}).get(one, ()))
            names = with_word if names is None else names & with_word
            if not names:
                return _NONE
        start = f" {reading.words[-1]}"
        return [self._positions[number] for number in names or () if start in self._texts[number]]


def _by_prefix(texts: Mapping[str, Iterable[int]]) -> dict[str, Sequence[int]]:
    """By each prefix of a text, the positions of all."""
    found: dict[str, set[int]] = {}
    for text, positions in texts.items():
        for end in range(1, len(text) + 1):
            found.setdefault(text[:end], set()).update(positions)
    return {prefix: tuple(sorted(positions)) for prefix, positions in found.items()}


class _Typos:
    """The prefixes of texts, found by texts that are one typing error away from one of them."""

    def __init__(self, texts: Collection[str]) -> None:
        self._near = {size: {key for text in texts for key in _near_keys(text, size)} for size in _NEAR}
        # By prefix, the characters that can follow it; by second character, the first characters of texts with it.
        self._following: dict[str, str] = {}
        for prefix, character in {(text[:end], text[end : end + 1]) for text in texts for end in range(len(text) + 1)}:
            self._following[prefix] = self._following.get(prefix, "") + character
        self._firsts: dict[str, str] = {}
        for prefix in self._following:
            if len(prefix) == 2:  # noqa: PLR2004 - the first and the second character
                self._firsts[prefix[1]] = self._firsts.get(prefix[1], "") + prefix[0]

    def near(self, text: str) -> Collection[str]:
        """The prefixes that are at most one typing error away from a text of CATEGORY_TYPO_MIN or more characters."""
        size = _NEAR[len(text) >= _NEAR[1]]
        start, near = text[:size], self._near[size]
        # The text is known without a character that is too many, wrong or swapped; whole where one is missing.
        if start not in near and near.isdisjoint(map("".join, combinations(start, size - 1))):
            return ()
        extra = [at for at in range(size) if start[:at] + start[at + 1 :] in near]
        places = range(len(text)) if len(extra) == size else extra
        missing = range(len(text)) if start in near or len(extra) == size else ()
        known = self._following
        return {one for one in self._corrections(text, places, missing) if one in known}

    def _corrections(self, text: str, places: Iterable[int], missing: Iterable[int]) -> Iterator[str]:
        """A superset; wrong and missing characters are replaced only by those that some text has at that position."""
        following = self._following
        for at in places:
            before, after = text[:at], text[at + 1 :]
            if before not in following:
                break
            yield before + after
            if after:
                yield before + after[0] + text[at] + after[1:]
            for character in following[before] if at else self._firsts.get(text[1], ""):
                yield before + character + after
        for at in missing:
            before, after = text[:at], text[at:]
            if before not in following:
                break
            for character in following[before] if at else self._firsts.get(text[0], ""):
                yield before + character + after


def _near_keys(text: str, size: int) -> Iterator[str]:
    """Texts of which a text of this size has one, itself or without a character, if it is a typing error away."""
    if len(text) == size - 1:
        yield text
    for length in (size, size + 1):
        if len(text) >= length:
            yield from map("".join, combinations(text[:length], length - 1))
