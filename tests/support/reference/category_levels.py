"""The level at which words mean a category (M5), in its simplest form, for the reference backend."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from index_mappings.category_forms import Level, LevelledForm, stem, unmarked
from index_mappings.ngrams import is_part_evidence
from index_mappings.table_words import SHOP_ENDINGS, unfolded
from index_mappings.text import is_ideographic
from service.search.query_words import QueryWord


@lru_cache(maxsize=1024)
def _parsed(names: tuple[str, ...]) -> list[LevelledForm]:
    return [LevelledForm.from_term(term) for term in names]


def level_of(names: tuple[str, ...], run: Sequence[QueryWord]) -> tuple[int, int]:
    """The best level of a word or a run with the names of a category, and minus the length of a compound's ending.

    A category that it does not mean has a level beyond all.
    """
    texts, raw = [word.text for word in run], [unfolded(word.typed) for word in run]
    keys, is_word = {" ".join(texts), "".join(texts)}, len(run) == 1
    levels: list[tuple[int, int]] = [(99, 0)]
    for level, text, language in _parsed(names):
        if not is_word and level > Level.STEM:
            continue
        if language is None:
            if text in keys:
                levels.append((level, 0))
            elif is_word and " " not in text and text.startswith(texts[0]) and is_part_evidence(texts[0]):
                levels.append((Level.BEGINNING, 0))
        elif _same_stem(text, language, raw):
            levels.append((level, 0))
        if is_word and level <= Level.STEM:
            levels += ((Level.ENDING, length) for length in _endings(text, language, texts[0]))
    best = min(level for level, _ in levels)
    return best, max(length for level, length in levels if level == best)


def _same_stem(known: str, language: str, typed: Sequence[str]) -> bool:
    stems = {" ".join(stem(language, word) for word in typed), stem(language, "".join(typed))}
    if all(unmarked(word) == word for word in typed):
        known = unmarked(known)
    return known in stems


def _endings(known: str, language: str | None, text: str) -> Iterator[int]:
    """The lengths of the endings of a word, or of what is left of it before a word for a shop, that equal a name."""
    if language is None:
        return (len(ending) for ending in _rests(text) if known == ending)
    if len(unmarked(known)) < 4:
        return iter(())
    return (len(ending) for ending in _rests(text) if unmarked(known) in (ending, stem(language, ending)))


@lru_cache(maxsize=1024)
def _rests(text: str) -> list[str]:
    whole = [(text[:end], 0) for shop in SHOP_ENDINGS if text.endswith(shop) and (end := len(text) - len(shop))]
    rests = [rest[start:] for rest, first in [(text, 1), *whole] for start in range(first, len(rest))]
    return [rest for rest in rests if len(rest) >= 4 or is_ideographic(rest)]
