"""Which categories a word, or a run of words, means, and at which level (M5).

A text has the categories of its best level only: what equals a name is not mixed with what only has its stem.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from index_mappings.category_forms import ENGLISH, Level, LevelledForm, run_stems, stem, unmarked
from index_mappings.ngrams import is_part_evidence
from index_mappings.table_words import SHOP_ENDINGS
from index_mappings.text import is_ideographic
from index_mappings.tiers import ENDING_MIN

# The positions of categories.
Positions = frozenset[int]
_NONE: Final[Positions] = frozenset()


class Meaning(NamedTuple):
    """The categories of a text, by position, and their level; without any, the level is that of compounds."""

    level: Level
    positions: Positions


NOTHING_MEANT: Final = Meaning(Level.ENDING, _NONE)


class CategoryLevels:
    """The forms of categories, as `category_forms` makes them, by their level."""

    def __init__(self, names: Iterable[Sequence[str]]) -> None:
        """Index the terms of each category; its position is that in `names`."""
        texts: dict[Level, dict[str, set[int]]] = {level: {} for level in Level}
        stems: dict[Level, dict[str, set[int]]] = {level: {} for level in Level}
        languages: set[str] = set()
        for position, terms in enumerate(names):
            for level, text, language in map(LevelledForm.from_term, terms):
                if language is None:
                    texts[level].setdefault(text, set()).add(position)
                    continue
                languages.add(language)
                for key in {f"{language}:{text}", f"{language}!{unmarked(text)}"}:
                    stems[level].setdefault(key, set()).add(position)
        self._languages = tuple(sorted(languages))
        self._texts = {level: _frozen(found) for level, found in texts.items() if found}
        self._stems = {level: _frozen(found) for level, found in stems.items() if found}
        words = [found for level, found in self._texts.items() if level is not Level.WORD_STEM]
        self._words = sorted({text for found in words for text in found if " " not in text})

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the stems."""
        return self._languages

    def stems_of(self, language: str) -> Iterator[str]:
        """The stems of whole names in a language, without their marks."""
        start = f"{language}!"
        for level in (Level.OWN, Level.STEM):
            yield from (key[len(start) :] for key in self._stems.get(level, ()) if key.startswith(start))

    def names_stem(self, language: str, typed: Sequence[str]) -> bool:
        """Whether words have the stem of a whole name in a language."""
        own, other = self._stems.get(Level.OWN, {}), self._stems.get(Level.STEM, {})
        mark = "!" if "".join(typed).isascii() or all(unmarked(word) == word for word in typed) else ":"
        if len(typed) == 1:
            key = f"{language}{mark}{stem(language, typed[0])}"
            return key in other or key in own
        return any((key := f"{language}{mark}{one}") in other or key in own for one in run_stems(language, typed))

    def of_run(self, texts: Sequence[str], typed: Sequence[str], languages: Collection[str] | None = None) -> Meaning:
        """The categories that neighbouring words name, by levels OWN to STEM; `typed` are the words of `unfolded`.

        `languages` are those in which the words may have a stem of a name; None if all.
        """
        languages = self._languages if languages is None else languages
        keys = {" ".join(texts), "".join(texts)}
        for level in (Level.OWN, Level.OTHER_LANGUAGE, Level.SYNONYM):
            found = _all_of(self._texts.get(level), keys)
            if level is Level.OWN and ENGLISH in languages:
                found |= self._with_stem(level, typed, (ENGLISH,))
            if found:
                return Meaning(level, found)
        return Meaning(Level.STEM, self._with_stem(Level.STEM, typed, languages))

    def of_word(self, text: str, typed: str) -> Meaning:
        """The categories that one word means, by any level."""
        named = self.of_run((text,), (typed,))
        if named.positions:
            return named
        if found := _all_of(self._texts.get(Level.WORD), (text,)):
            return Meaning(Level.WORD, found)
        if found := self._with_stem(Level.WORD_STEM, (typed,), self._languages):
            return Meaning(Level.WORD_STEM, found)
        if found := self._begun(text):
            return Meaning(Level.BEGINNING, found)
        return Meaning(Level.ENDING, self._ended(text))

    def _with_stem(self, level: Level, typed: Sequence[str], languages: Iterable[str]) -> Positions:
        """Equal stems, with their marks, or without where the words are typed without any."""
        known = self._stems.get(level)
        if known is None:
            return _NONE
        marks = "!" if all(unmarked(word) == word for word in typed) else ":"
        keys = (f"{language}{marks}{one}" for language in languages for one in run_stems(language, typed))
        return _all_of(known, keys)

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
            for start in range(1 if inner else 0, len(rest)):
                ending = rest[start:]
                if len(ending) <= longest or not (len(ending) >= ENDING_MIN or is_ideographic(ending)):
                    break
                if positions := self._named_by(ending):
                    longest, found = len(ending), positions
                    break
        return found

    @staticmethod
    def _compounds(text: str) -> Iterator[tuple[str, bool]]:
        """The word, of which the ending is an inner part, and what is left of it before a word for a shop."""
        yield text, True
        for shop in SHOP_ENDINGS:
            if text.endswith(shop) and len(text) > len(shop):
                yield text[: -len(shop)], False

    def _named_by(self, text: str) -> Positions:
        texts = (_all_of(self._texts.get(level), (text,)) for level in Level if level.names)
        return _NONE.union(*texts, *(self._with_stem_text(level, text) for level in (Level.OWN, Level.STEM)))

    def _with_stem_text(self, level: Level, text: str) -> Positions:
        """The categories of a stem that a text is, or has in its language."""
        known = self._stems.get(level)
        keys = (
            f"{language}!{one}"
            for language in (self._languages if level is Level.STEM else (ENGLISH,))
            for one in (text, *run_stems(language, (text,)))
            if len(one) >= ENDING_MIN
        )
        return _all_of(known, keys)


def _frozen(found: Mapping[str, set[int]]) -> dict[str, Positions]:
    return {text: frozenset(positions) for text, positions in found.items()}


def _all_of(known: Mapping[str, Positions] | None, keys: Iterable[str]) -> Positions:
    return _NONE if known is None else _NONE.union(*(known[key] for key in keys if key in known))
