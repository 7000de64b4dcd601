"""Stems that names have, and words that may have one of them: most words are answered without asking a stemmer."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from index_mappings.category_forms import stemmer_of, unmarked

# By stemmer for Latin script, the last letters that a word may lack of its stem, but for words with _CHANGED.
_LAST_LETTERS: Final = {
    **dict.fromkeys(("da", "de", "hu", "no", "pl", "sv"), ""),
    **dict.fromkeys(("es", "it", "pt", "ro"), "t"),
    "ca": "c",
    "cs": "bcdfghjklmnpqrstvwxz",
    "en": "iel",
    "fr": "tlixu",
    "fi": "aeiouy",
    "nl": "bcdfghjklmnpqrstvwxz",
    "tr": "iıupkt",
}
_CHANGED: Final = (("en", "ying"), ("de", "ae"), ("de", "oe"), ("de", "ue"), ("de", "ß"), ("nl", "ge"))
# Stemmers that leave words in Latin letters as they are.
_OTHER_SCRIPTS: Final = frozenset(("ar", "el", "fa", "hi", "hy", "ne", "ru", "ta", "yi"))
# The lengths of the beginnings that are compared before a stemmer is asked.
_COMPARED: Final = (7, 5, 4, 3, 2, 1)
# No longer word has a stem of one letter.
_LETTER: Final = 6
_NO_STEMS: Final[Mapping[str, str]] = MappingProxyType({})
# The maximum number of words that are cached with their stems.
_CACHED_WORDS: Final = 8_192


class KnownStems:
    """Stems in several languages, with and without their marks, and which of them a word has."""

    def __init__(self, known: Iterable[tuple[str, str]]) -> None:
        """`known` are the stems, each after its language."""
        starts: dict[str, set[str]] = {}
        self._known: dict[str, set[str]] = {}
        for language, text in known:
            self._known.setdefault(language, set()).add(text)
            if language in _LAST_LETTERS or text.isascii():
                starts.setdefault(_beginning(language, unmarked(text)), set()).add(language)
        self._starts = {start: frozenset(found) for start, found in starts.items()}
        self._sizes = sorted({len(start) for start in starts})
        self._other_scripts = _OTHER_SCRIPTS.intersection(self._known)
        self._always = frozenset(self._known).difference(_LAST_LETTERS, _OTHER_SCRIPTS)
        self._stemmers = {language: found for language in self._known if (found := stemmer_of(language))}
        self._changed = [(language, part) for language, part in _CHANGED if language in self._known]
        # A cache of `of`.
        self._cached: dict[str, Mapping[str, str]] = {}

    def of(self, word: str) -> Mapping[str, str]:
        """By language, the stem of a word of `unfolded` if it is a known one."""
        found = self._cached.get(word)
        if found is None:
            if len(self._cached) >= _CACHED_WORDS:
                self._cached.clear()
            found = self._cached[word] = self.of_uncached(word)
        return found

    def of_uncached(self, word: str) -> Mapping[str, str]:
        """As `of`, for a part of a word, of which there are too many to be cached."""
        asked = self._asked(word if word.isascii() else unmarked(word))
        stemmed = [(language, self._stemmers[language].stemWord(word)) for language in asked]
        return {language: one for language, one in stemmed if one in self._known[language]} or _NO_STEMS

    def _asked(self, plain: str) -> Iterable[str]:
        """The languages in which a word without its marks may have a known stem."""
        found = self._always if plain.isascii() else self._always | self._other_scripts
        known, length = self._starts, len(plain)
        for size in self._sizes:
            if size > length:
                break
            if (start := plain[:size]) in known and (size > 1 or length <= _LETTER):
                found = found | known[start]
        for language, part in self._changed:
            if part in plain:
                found = found | {language}
        return found


def _beginning(language: str, text: str) -> str:
    """A beginning that a word has if this is its stem."""
    last = _LAST_LETTERS.get(language, "")
    kept = len(text)
    if language == "fi":
        # Doubled consonants before the last vowels become one.
        kept = len(text.rstrip(last))
    elif language == "nl":
        # Endings become `eer`, and vowels before the last consonant are doubled.
        kept -= 3 if text.endswith("eer") else 2 if text[-3:-2] == text[-2:-1] else 1
    elif text[-1] in last:
        kept -= 2 if language == "fr" and text.endswith(("ent", "iqu")) else 1
    return text[: next((size for size in _COMPARED if size <= kept), 0)]
