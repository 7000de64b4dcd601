"""The forms of categories (M5), as terms with levels, to which `category_levels` compares words of queries."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import normalize

import Stemmer

from index_mappings.table_words import TABLE_WORDS, unfolded
from index_mappings.text import scripts_of, spellings, typed_words, words_of
from index_mappings.tiers import ALONE_MIN, STEM_MIN

# The language of display names, slugs, and synonyms without a stated one.
ENGLISH: Final = "en"
# A BCP 47 tag, and a text in that language.
Named = tuple[str, str]
# Separates the language of a stem from it; no folded text has one.
STEM_MARK: Final = ":"
# The prefixes of Unicode's names of Han and kana letters.
_DENSE: Final = frozenset(("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA"))
# libstemmer knows its languages by their ISO 639 codes, but Norwegian only as a whole.
_NORWEGIAN: Final = frozenset(("nb", "nn"))
_FIRST_MARK: Final = "\u0300"
_LAST_MARK: Final = "\u036f"


class Level(IntEnum):
    """How a word, or a run of words, means a category (M5), best first; up to STEM it *names* the category.

    The last two have no forms: a word begins a form of OWN to WORD_STEM or ends with one of OWN to STEM.
    """

    OWN = 1  # equals the display name or the slug, or has its English stem
    OTHER_LANGUAGE = 2  # equals a name in another language
    SYNONYM = 3
    STEM = 4  # has the stem of one of these in its language
    WORD = 5  # equals a word of a name of several
    WORD_STEM = 6  # has the stem of such a word
    BEGINNING = 7  # begins a word of a name
    ENDING = 8  # a compound that ends with a text of OWN to STEM, or so before a word for a shop

    @property
    def names(self) -> bool:
        """Whether it names the category, and does not only hint at it."""
        return self <= Level.STEM


class LevelledForm(NamedTuple):
    """A text by which a category is found, or a stem of one in a language."""

    level: Level
    text: str
    language: str | None = None

    def to_term(self) -> str:
        """The form as it is stored."""
        return f"{self.level:d}{self.text}" if self.language is None else f"{self.level:d}{self.language}:{self.text}"

    @classmethod
    def from_term(cls, term: str) -> "LevelledForm":
        """Read a stored form."""
        level, rest = Level(int(term[0])), term[1:]
        language, mark, text = rest.partition(STEM_MARK)
        return cls(level, text, language) if mark else cls(level, rest)


@dataclass(frozen=True, slots=True)
class CategoryForms:
    """The forms of a category; each tuple is sorted and has no duplicates.

    By `words` of its names the typeahead finds its shops (M9). `names` are the terms of `LevelledForm`: the texts are
    folded names, spaced and joined, also without their table words (Pet Shop is `pet`), and words of names of several;
    stems have their marks, one for each word, and that of the joined name.
    """

    words: tuple[str, ...]
    names: tuple[str, ...]


def category_forms(slug: str, name: str, names: Iterable[Named] = (), synonyms: Iterable[Named] = ()) -> CategoryForms:
    """All forms of a category; `names` are those in other languages."""
    names, synonyms = tuple(names), tuple(synonyms)
    own = ((ENGLISH, name), (ENGLISH, slug))
    found: set[str] = set()
    for level, texts in ((Level.OWN, own), (Level.OTHER_LANGUAGE, names), (Level.SYNONYM, synonyms)):
        for tag, text in texts:
            language = stemmed_language(tag)
            found.update(form.to_term() for words in _wordings(text) for form in _forms(level, language, words))
    # Without the short words of other names: `de`, `og` and the like would suggest it for many queries.
    typed = {*words_of(name), *words_of(slug)}
    typed.update(word for _, text in (*names, *synonyms) for word in words_of(text) if is_distinctive(word))
    return CategoryForms(tuple(sorted(typed)), tuple(sorted(found)))


def _wordings(text: str) -> Iterator[Sequence[tuple[str, str]]]:
    """The words of a name in each spelling, folded and as in the name; then without its table words."""
    for spelling in spellings(text):
        words = typed_words(spelling)
        kept = [word for word in words if unfolded(word[1]) not in TABLE_WORDS]
        if words:
            yield words
        if kept and len(kept) < len(words):
            yield kept


def _forms(level: Level, language: str | None, words: Sequence[tuple[str, str]]) -> Iterator[LevelledForm]:
    texts, typed = [text for text, _ in words], [unfolded(one) for _, one in words]
    yield LevelledForm(level, " ".join(texts))
    yield LevelledForm(level, "".join(texts))
    several = len(words) > 1
    counted = [is_distinctive(text) and one not in TABLE_WORDS for text, one in zip(texts, typed, strict=True)]
    if several:
        yield from (LevelledForm(Level.WORD, text) for text, counts in zip(texts, counted, strict=True) if counts)
    if language is None:
        return
    stems = [stem(language, one) for one in typed]
    stem_level = Level.OWN if level is Level.OWN else Level.STEM
    for whole in (" ".join(stems), stem(language, "".join(typed))):
        if stem_level is Level.OWN or len(whole) >= STEM_MIN:
            yield LevelledForm(stem_level, whole, language)
    if several:
        kept = (one for one, counts in zip(stems, counted, strict=True) if counts)
        yield from (LevelledForm(Level.WORD_STEM, one, language) for one in kept)


def stemmed_language(tag: str) -> str | None:
    """The language of a BCP 47 tag as `stem` takes it; None if there is no stemmer for it."""
    language = tag.partition("-")[0].lower()
    language = "no" if language in _NORWEGIAN else language
    return language if stemmer_of(language) else None


@lru_cache(maxsize=16_384)
def stem(language: str, word: str) -> str:
    """The Snowball stem, with its marks, of a word of `unfolded`, in a language of `stemmed_language`."""
    stemmer = stemmer_of(language)
    return stemmer.stemWord(word) if stemmer else word


def unmarked(text: str) -> str:
    """A text of `unfolded` or a stem without its marks: `ü` is `u`, and letters of their own, as `ı`, stay."""
    if text.isascii():
        return text
    return normalize("NFC", "".join(c for c in normalize("NFD", text) if not _FIRST_MARK <= c <= _LAST_MARK))


@lru_cache(maxsize=128)
def stemmer_of(language: str) -> Stemmer.Stemmer | None:
    """The stemmer of a language, which caches nothing; None if there is none."""
    try:
        return Stemmer.Stemmer(language, 0)
    except KeyError:
        return None


def is_distinctive(word: str) -> bool:
    """Whether a word of a name is long enough to count alone: ALONE_MIN, or any word of Han or kana."""
    return len(word) >= ALONE_MIN or not _DENSE.isdisjoint(scripts_of(word))
