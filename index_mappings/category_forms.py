"""The forms of categories, by which words of queries resolve to them (M5)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from unicodedata import category, normalize

import Stemmer

from index_mappings.text import PLAIN, fold, scripts_of, spellings, typed_words, words_of
from index_mappings.tiers import ALONE_MIN

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


@dataclass(frozen=True, slots=True)
class CategoryForms:
    """The forms of a category; each tuple is sorted and has no duplicates.

    By `words` of its names the typeahead finds it (M9, M10). One word of a query can equal those in `alone`: the words
    of its names that are long enough, each name without its spaces, and the stems of both (`stem_term`). A run of words
    can equal those in `whole`: its names, spaced and joined, and the stems of both.
    """

    words: tuple[str, ...]
    alone: tuple[str, ...]
    whole: tuple[str, ...]


def category_forms(slug: str, name: str, others: Iterable[Named] = ()) -> CategoryForms:
    """All forms of a category; `others` are its names in other languages, and its synonyms."""
    others = tuple(others)
    alone: set[str] = set()
    whole: set[str] = set()
    for language, text in ((ENGLISH, name), (ENGLISH, slug), *others):
        for spelling in spellings(text):
            if words := typed_words(spelling):
                _add_forms(stemmed_language(language), words, alone, whole)
    # The short words of other names are left out, because `de`, `og` and the like would suggest the category for many
    # queries.
    typed = {*words_of(name), *words_of(slug)}
    typed.update(word for _, text in others for word in words_of(text) if _is_distinctive(word))
    return CategoryForms(tuple(sorted(typed)), tuple(sorted(alone)), tuple(sorted(whole)))


def _add_forms(language: str | None, words: Sequence[tuple[str, str]], alone: set[str], whole: set[str]) -> None:
    texts = [text for text, _ in words]
    counted = [_is_distinctive(text) for text in texts]
    alone.update(text for text, counts in zip(texts, counted, strict=True) if counts)
    alone.add("".join(texts))
    whole.update((" ".join(texts), "".join(texts)))
    if language is not None:
        raw = [unfolded(typed) for _, typed in words]
        stems = [stem(language, text) for text in raw]
        joined_stem = stem_term(language, (stem(language, "".join(raw)),))
        alone.update(stem_term(language, (one,)) for one, counts in zip(stems, counted, strict=True) if counts)
        alone.add(joined_stem)
        whole.update((stem_term(language, stems), joined_stem))


def stemmed_language(tag: str) -> str | None:
    """The language of a BCP 47 tag as `stem` takes it; None if there is no stemmer for it."""
    language = tag.partition("-")[0].lower()
    language = "no" if language in _NORWEGIAN else language
    return language if _stemmer(language) else None


def stem_term(language: str, stems: Iterable[str]) -> str:
    """The form that stands for the stems of one word or of several; it differs from all folded texts."""
    return f"{language}{STEM_MARK}{' '.join(stems)}"


@lru_cache(maxsize=16_384)
def stem(language: str, word: str) -> str:
    """The folded Snowball stem of a word of `unfolded`, in a language of `stemmed_language`."""
    stemmer = _stemmer(language)
    return fold(stemmer.stemWord(word) if stemmer else word)


def unfolded(typed: str) -> str:
    """A typed word in the form of which stems are taken: lower case, NFC, with its marks, without punctuation."""
    if typed.isascii() and typed.isalnum():
        return typed.lower()
    composed = normalize("NFC", typed.translate(PLAIN).lower())
    return "".join(char for char in composed if category(char)[0] in "LMN")


@lru_cache(maxsize=128)
def _stemmer(language: str) -> Stemmer.Stemmer | None:
    try:
        # Without the stemmer's own cache: `stem` has one.
        return Stemmer.Stemmer(language, 0)
    except KeyError:
        return None


def _is_distinctive(word: str) -> bool:
    return len(word) >= ALONE_MIN or not _DENSE.isdisjoint(scripts_of(word))
