"""Which categories a word or a run of words means, by its best level only (M5)."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from index_mappings.category_forms import Level, LevelledForm, unmarked
from index_mappings.ngrams import is_part_evidence
from index_mappings.table_words import SHOP_ENDINGS
from index_mappings.text import is_ideographic
from index_mappings.tiers import ENDING_MIN
from shop_directory.words.known_stems import KnownStems

# The positions of categories.
Positions = frozenset[int]
_NONE: Final[Positions] = frozenset()
# No ending of a word is this number of characters longer than its stem.
_INFLECTED: Final = 32


class Meaning(NamedTuple):
    """The categories of a text, by position, and their level; without any, the level is that of compounds."""

    level: Level
    positions: Positions


_NAMING_LEVELS: Final = tuple(level for level in Level if level.names)
# The levels of whole names' stems.
_STEM_LEVELS: Final = (Level.OWN, Level.STEM)
NOTHING_MEANT: Final = Meaning(Level.ENDING, _NONE)


class Stemmed(NamedTuple):
    """The categories with a name that has the stems of some words: with an own name, and with another one."""

    own: Positions
    other: Positions


NOT_STEMMED: Final = Stemmed(_NONE, _NONE)


@dataclass(slots=True)
class Stems:
    """The stems of one level in one language, with and without their marks, and the first ones of those of several."""

    marked: dict[str, Positions] = field(default_factory=dict)
    plain: dict[str, Positions] = field(default_factory=dict)
    firsts: set[str] = field(default_factory=set)

    def add(self, text: str, position: int) -> None:
        """Add a stem with its marks, or of several words, of the category at a position."""
        for known, key in ((self.marked, text), (self.plain, unmarked(text))):
            known[key] = known.get(key, _NONE) | {position}
            first, space, _ = key.partition(" ")
            if space:
                self.firsts.add(first)


class CategoryLevels:
    """The forms of categories, as `category_forms` makes them, by their level."""

    def __init__(self, names: Iterable[Sequence[str]]) -> None:
        """Index the terms of each category; its position is that in `names`."""
        texts: dict[Level, dict[str, set[int]]] = {level: {} for level in Level}
        known: dict[Level, dict[str, Stems]] = {level: {} for level in Level}
        for position, terms in enumerate(names):
            for level, text, language in map(LevelledForm.from_term, terms):
                if language is None:
                    texts[level].setdefault(text, set()).add(position)
                else:
                    known[level].setdefault(language, Stems()).add(text, position)
        self._languages = tuple(sorted({language for found in known.values() for language in found}))
        self._texts = {level: _frozen(found) for level, found in texts.items() if found}
        # By level, pairs of the place of a language in `_languages`, and its stems.
        self._stems = {
            level: [(place, found[one]) for place, one in enumerate(self._languages) if one in found]
            for level, found in known.items()
        }
        # The maximum length of a text with which a compound may end.
        stemmed = (text for level in _STEM_LEVELS for _, one in self._stems[level] for text in one.plain)
        named = (text for level in _NAMING_LEVELS for text in self._texts.get(level, ()))
        self._longest = max(map(len, (*stemmed, *named)), default=0) + _INFLECTED
        tables = [
            (self._languages[place], table)
            for found in self._stems.values()
            for place, one in found
            for table in (one.marked, one.plain)
        ]
        # The stems of names, and those of each word of names of several.
        self._known = KnownStems({(one, part) for one, table in tables for text in table for part in text.split()})
        # The stems without marks of each language, and all texts with which a compound may end.
        self._plain: dict[str, dict[str, Positions]] = {}
        self._ends: dict[str, Positions] = {}
        for place, found in (one for level in _STEM_LEVELS for one in self._stems[level]):
            _join(self._plain.setdefault(self._languages[place], {}), found.plain)
            _join(self._ends, {text: known for text, known in found.plain.items() if len(text) >= ENDING_MIN})
        for level in _NAMING_LEVELS:
            _join(self._ends, self._texts.get(level, {}))
        words = [found for level, found in self._texts.items() if level is not Level.WORD_STEM]
        self._words = sorted({text for found in words for text in found if " " not in text})

    def of_run(self, texts: Sequence[str], typed: Sequence[str]) -> Meaning:
        """The categories that neighbouring words name, by levels OWN to STEM; `typed` are the words of `unfolded`."""
        keys = {" ".join(texts), "".join(texts)}
        own = Stemmed(self._with_stem(Level.OWN, typed), _NONE)
        if (meaning := self.named(keys, own)).positions:
            return meaning
        return Meaning(Level.STEM, self._with_stem(Level.STEM, typed))

    def named(self, keys: Collection[str], stemmed: Stemmed) -> Meaning:
        """As `of_run`, for words spaced and joined, and the categories of their stems."""
        for level in (Level.OWN, Level.OTHER_LANGUAGE, Level.SYNONYM):
            found = stemmed.own if level is Level.OWN else _NONE
            if (texts := self._texts.get(level)) is not None:
                for key in keys:
                    if key in texts:
                        found |= texts[key]
            if found:
                return Meaning(level, found)
        return Meaning(Level.STEM, stemmed.other)

    def with_stems(self, stemmed: Iterable[tuple[str, str]], typed: Sequence[str]) -> Stemmed:
        """The categories with a name that has one of some stems of words, each after its language."""
        is_plain = all(unmarked(word) == word for word in typed)
        found = {Level.OWN: _NONE, Level.STEM: _NONE}
        for level, language, known in self.stems_of_names():
            table = known.plain if is_plain else known.marked
            for one, text in stemmed:
                if one == language and text in table:
                    found[level] |= table[text]
        return Stemmed(found[Level.OWN], found[Level.STEM])

    def stems_of_names(self) -> Iterator[tuple[Level, str, Stems]]:
        """The stems of whole names, with their level and language."""
        for level in _STEM_LEVELS:
            for place, known in self._stems[level]:
                yield level, self._languages[place], known

    def of_word(self, text: str, typed: str) -> Meaning:
        """The categories that one word means, by any level."""
        named = self.of_run((text,), (typed,))
        if named.positions:
            return named
        if found := _all_of(self._texts.get(Level.WORD), (text,)):
            return Meaning(Level.WORD, found)
        if found := self._with_stem(Level.WORD_STEM, (typed,)):
            return Meaning(Level.WORD_STEM, found)
        if found := self._begun(text):
            return Meaning(Level.BEGINNING, found)
        return Meaning(Level.ENDING, self._ended(text))

    def _with_stem(self, level: Level, typed: Sequence[str]) -> Positions:
        """Equal stems, with their marks, or without where the words are typed without any.

        Of several words those of each are compared, and the stem of all joined.
        """
        joined = self._known.of("".join(typed))
        each = [self._known.of(word) for word in typed] if len(typed) > 1 else []
        if not joined and not (each and all(each)):
            return _NONE
        is_plain = all(unmarked(word) == word for word in typed)
        found = _NONE
        for place, known in self._stems[level]:
            language = self._languages[place]
            table = known.plain if is_plain else known.marked
            if (one := joined.get(language)) in table:
                found |= table[one]
            if each and each[0].get(language) in known.firsts and all(language in one for one in each):
                found |= table.get(" ".join([one[language] for one in each]), _NONE)
        return found

    def _begun(self, text: str) -> Positions:
        if not is_part_evidence(text):
            return _NONE
        first = at = bisect_left(self._words, text)
        while at < len(self._words) and self._words[at].startswith(text):
            at += 1
        levels = (Level.OWN, Level.OTHER_LANGUAGE, Level.SYNONYM, Level.WORD)
        return _NONE.union(*(_all_of(self._texts.get(level), self._words[first:at]) for level in levels))

    def _ended(self, text: str) -> Positions:
        """The categories of the longest name or stem that a compound ends with, or has before a word for a shop."""
        longest, found = 0, _NONE
        for rest, inner in self._compounds(text):
            endings = []
            for start in range(max(1 if inner else 0, len(rest) - self._longest), len(rest)):
                ending = rest[start:]
                if len(ending) <= longest or not (len(ending) >= ENDING_MIN or is_ideographic(ending)):
                    break
                endings.append(ending)
            if endings and (named := self._first_named(endings)) is not None:
                longest, found = named
        return found

    @staticmethod
    def _compounds(text: str) -> Iterator[tuple[str, bool]]:
        """The word, of which the ending is an inner part, and the rest of it before a word for a shop."""
        yield text, True
        if not text.endswith(SHOP_ENDINGS):
            return
        for shop in SHOP_ENDINGS:
            if text.endswith(shop) and len(text) > len(shop):
                yield text[: -len(shop)], False

    def _first_named(self, endings: Sequence[str]) -> tuple[int, Positions] | None:
        """The length of the first text that names a category, or has or is a stem of one, and the categories."""
        for text in endings:
            found = self._ends.get(text, _NONE)
            for language, one in self._known.of_uncached(text).items():
                if len(one) >= ENDING_MIN:
                    found |= self._plain[language].get(one, _NONE)
            if found:
                return len(text), found
        return None


def _join(table: dict[str, Positions], other: Mapping[str, Positions]) -> None:
    for text, positions in other.items():
        table[text] = table.get(text, _NONE) | positions


def _frozen(found: Mapping[str, set[int]]) -> dict[str, Positions]:
    return {text: frozenset(positions) for text, positions in found.items()}


def _all_of(known: Mapping[str, Positions] | None, keys: Iterable[str]) -> Positions:
    return _NONE if known is None else _NONE.union(*(known[key] for key in keys if key in known))
