"""Which categories are suggested for a query that is being typed, by their names (M10).

All tables are computed when a stamp is opened. Categories are positions in M11's order.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from index_mappings.category_forms import Level, LevelledForm, stem, unmarked
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
from service.search.category_levels import CategoryLevels

# The maximum number of categories of an answer. Better tiers have fewer, so twice as many of a prefix are enough.
MOST: Final = 20
_ENOUGH: Final = 2 * MOST
# The categories of a prefix of more texts than this are computed in advance.
_SCANNED: Final = 16
# Stemmers of languages in Latin script that only change the end of a word, but for words with these parts.
_CHANGING_ENDS: Final = {
    **dict.fromkeys(("fr", "es", "it", "pl", "tr", "sv", "da", "no", "hu", "pt", "ro", "ca", "cs"), ()),
    "en": ("ying",),
    "de": ("ae", "oe", "ue", "ß"),
}
# Stemmers that leave words in Latin letters as they are.
_OTHER_SCRIPTS: Final = frozenset(("ar", "el", "fa", "hi", "hy", "ne", "ru", "ta", "yi"))
# How many of the last characters of a stem may differ from the word: one, or two of a stem longer than this.
_LONG_STEM: Final = 5
# The maximum number of words that are cached with their stems.
_CACHED_WORDS: Final = 8_192
_NONE: Final[tuple[int, ...]] = ()
# The kinds of texts: whole names, and words of names of several. By kind, categories.
_OWN, _OTHER, _SYNONYM, _OWN_WORD, _OTHER_WORD = range(5)
_Begun = Sequence[Sequence[int]]
_NO_LANGUAGES: Final[frozenset[str]] = frozenset()
_NOTHING: Final[_Begun] = ((), (), (), (), ())
# After each character of a text.
_LAST: Final = chr(0x10FFFF)

# Table words as names have them.
_FOLDED_TABLE_WORDS: Final = frozenset(map(fold, TABLE_WORDS))
_BEGUN_SHOP_WORDS: Final = frozenset(
    word[:end] for word in SHOP_ENDINGS for end in range(BEGUN_SHOP_WORD_MIN, len(word) + 1)
)


class _Reading(NamedTuple):
    """Some words of a query, folded and with their marks.

    `whole` compares them with whole names only; `own` with those, and with beginnings and words of own names. Whole
    names that are not own ones count only if it is `named`.
    """

    words: tuple[str, ...]
    marked: tuple[str, ...]
    whole: bool = False
    own: bool = False
    named: bool = True

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
        self._stems = _Stems(levels)
        self._names = _Beginnings()
        for kind, level in ((_OWN, Level.OWN), (_OTHER, Level.OTHER_LANGUAGE), (_SYNONYM, Level.SYNONYM)):
            self._names.add(kind, texts[level])
        self._in_own, self._in_others = _WordsOfNames(own), _WordsOfNames(others)
        self._names.add(_OWN_WORD, self._in_own.beginnings)
        self._names.add(_OTHER_WORD, self._in_others.beginnings)
        self._names.complete()
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
                if last.has_letters(LEFT_MIN):
                    begun = [self._names.of(key) for key in last.keys]
                    if by_names := self._by_names(last, begun, others=last.has_letters(LEFT_OTHER_MIN)):
                        return list(by_names)[:limit]
        for reading in readings:
            if found := self._with_typo(reading, limit):
                return found
        return ()

    def _by_names(self, reading: _Reading, begun: Sequence[_Begun], *, others: bool) -> dict[int, None]:
        """The categories of the tiers (6) to (3), in order; without those of other names than own ones if so said.

        `begun` are the categories of the reading's keys.
        """
        found: dict[int, None] = {}
        is_own, named = False, _NONE
        languages = self._stems.languages_of(reading.marked)
        is_begun = any(one is not _NOTHING for one in begun)
        if languages or (is_begun and any(map(self._names.has, reading.keys))):
            meaning = self._levels.of_run(reading.words, reading.marked, languages)
            is_own, named = meaning.level is Level.OWN, tuple(meaning.positions)
        if is_own:
            _append(found, named)
        own = () if reading.whole else [position for one in begun for position in one[_OWN]]
        if own:
            for key in reading.keys:
                _append(found, self._names.of(f"{key} ")[_OWN])
        if others and not is_own:
            _append(found, named)
        _append(found, own)
        return found

    def _by_tiers(self, reading: _Reading, limit: int) -> Sequence[int]:
        begun = [self._names.of(key) for key in reading.keys]
        found = self._by_names(reading, begun, others=reading.named)
        if reading.whole or len(found) >= limit:
            return list(found)[:limit]
        alone = len(reading.words) == 1
        if alone and begun[0] is _NOTHING:
            return list(found)
        second = list(begun[0][_OWN_WORD] if alone else self._in_own.of(reading))
        others = not reading.own and reading.has_letters(OTHER_NAME_MIN)
        if others:
            second += [position for one in begun for position in one[_OTHER]]
        _append(found, second)
        if len(found) < limit and others and reading.has_letters(SYNONYM_BEGINNING_MIN):
            third = list(begun[0][_OTHER_WORD] if alone else self._in_others.of(reading))
            _append(found, (*third, *[position for one in begun for position in one[_SYNONYM]]))
        return list(found)[:limit]

    def _with_typo(self, reading: _Reading, limit: int) -> Sequence[int]:
        if reading.whole:
            return ()
        found: set[int] = set()
        for key in reading.keys:
            if len(key) >= CATEGORY_TYPO_MIN:
                for text in self._typos.near(key):
                    begun = self._names.of(text)
                    found.update(begun[_OWN], begun[_OTHER])
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
        # Next to other table words than those for a shop, a short word is more often the beginning of a shop's name:
        # `new bal`.
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
    reading = _Reading(words, marked)
    return _Reading(words, marked, whole=not reading.has_letters(LEFT_MIN), own=not reading.has_letters(LEFT_OTHER_MIN))


def _append(found: dict[int, None], positions: Iterable[int]) -> None:
    for position in sorted(positions):
        found.setdefault(position)


class _Beginnings:
    """Texts of five kinds, each with the categories that have it, found by their prefixes."""

    def __init__(self) -> None:
        self._added: dict[str, list[tuple[int, int]]] = {}
        self._texts: list[str] = []
        self._entries: list[tuple[tuple[int, int], ...]] = []
        # The categories of prefixes of many texts, and those of these prefixes that are texts.
        self._frequent: dict[str, _Begun] = {}

    def add(self, kind: int, found: Mapping[str, Iterable[int]]) -> None:
        """Add the texts of a kind, with the positions of their categories."""
        for text, positions in found.items():
            self._added.setdefault(text, []).extend((kind, position) for position in sorted(set(positions)))

    def complete(self) -> None:
        """Sort what was added."""
        self._texts = sorted(self._added)
        self._entries = [tuple(self._added[text]) for text in self._texts]
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
                self._frequent[prefix] = tuple([tuple(sorted(set(one))[:_ENOUGH]) for one in known])
                yield at, end, length + 1
            at = end

    def of(self, prefix: str) -> _Begun:
        """By kind, the categories of all texts that begin so, or the first _ENOUGH of them; some may be repeated."""
        known = self._frequent.get(prefix)
        if known is not None:
            return known
        texts = self._texts
        first = at = bisect_left(texts, prefix)
        while at < len(texts) and texts[at].startswith(prefix):
            at += 1
        return _by_kind(self._entries[first:at]) if at > first else _NOTHING

    def has(self, text: str) -> bool:
        """Whether it is a text."""
        at = bisect_left(self._texts, text)
        return at < len(self._texts) and self._texts[at] == text


def _by_kind(entries: Iterable[Iterable[tuple[int, int]]]) -> _Begun:
    found: tuple[list[int], ...] = ([], [], [], [], [])
    for some in entries:
        for kind, position in some:
            found[kind].append(position)
    return found


class _Stems:
    """The languages in which words may have the stem of a whole name."""

    def __init__(self, levels: CategoryLevels) -> None:
        self._levels = levels
        self._all = levels.languages
        self._always = frozenset(self._all).difference(_CHANGING_ENDS, _OTHER_SCRIPTS)
        self._scripts = self._always | _OTHER_SCRIPTS.intersection(self._all)
        self._changed = tuple([(part, one) for one in self._all for part in _CHANGING_ENDS.get(one, ())])
        # By the beginning that a word has with the stem of a name; with the first and the last of several stems.
        starts: tuple[dict[str, set[str]], ...] = ({}, {}, {})
        for language in self._all:
            for one in levels.stems_of(language) if language in _CHANGING_ENDS else ():
                stems = one.split(" ")
                kinds = ((0, one),) if len(stems) == 1 else ((1, stems[0]), (2, stems[-1]))
                for kind, known in kinds:
                    start = known[: max(2, len(known) - 1 - (len(known) > _LONG_STEM))]
                    starts[kind].setdefault(start, set()).add(language)
        self._whole, self._first, self._last = (
            {start: frozenset(found) for start, found in some.items()} for some in starts
        )

    def languages_of(self, marked: Sequence[str]) -> Collection[str]:
        """The languages in which words, or their joined text, have the stem of a name."""
        return [one for one in self._asked(marked) if self._levels.names_stem(one, marked)]

    def _asked(self, marked: Sequence[str]) -> Collection[str]:
        """The languages in which they may have one."""
        text = "".join(marked)
        found = self._always
        if not text.isascii():
            marked, text = [unmarked(word) for word in marked], unmarked(text)
            if not text.isascii():
                found = self._scripts
        if whole := _with_start(self._whole, text):
            found |= whole
        if len(marked) > 1 and (first := _with_start(self._first, marked[0])):
            found |= first & _with_start(self._last, marked[-1])
        for part, language in self._changed:
            if part in text:
                found |= {language}
        return found


def _with_start(starts: Mapping[str, frozenset[str]], text: str) -> frozenset[str]:
    known = [starts[text[:end]] for end in range(1, len(text) + 1) if text[:end] in starts]
    return frozenset().union(*known) if known else _NO_LANGUAGES


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
        # The words that count with the categories of their names.
        self.beginnings: Mapping[str, Iterable[int]] = begun
        self._languages = tuple(sorted({name.language for name in names if name.language is not None}))
        # A cache of `_keys_of`.
        self._keys: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, reading: _Reading) -> tuple[int, ...]:
        """The categories with a name that has all words, and of which a word begins with the last."""
        words = reading.words
        last = words[-1]
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
