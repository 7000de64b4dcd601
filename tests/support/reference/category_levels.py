"""The level at which words mean a category (M5), in its simplest form, for the reference backend."""

from collections.abc import Sequence
from functools import lru_cache

from index_mappings.category_forms import Level, LevelledForm, stem, unmarked
from index_mappings.ngrams import is_part_evidence
from index_mappings.table_words import SHOP_ENDINGS, unfolded
from index_mappings.text import is_ideographic
from shop_directory.words.query_words import QueryWord


@lru_cache(maxsize=1024)
def _parsed(names: tuple[str, ...]) -> list[tuple[LevelledForm, str]]:
    """The forms of a category, each also without its marks."""
    forms = map(LevelledForm.from_term, names)
    return [(form, unmarked(form.text)) for form in forms]


def level_of(names: tuple[str, ...], run: Sequence[QueryWord]) -> tuple[int, int]:
    """The best level of a word or a run with the names of a category, and minus the length of a compound's ending.

    A category that it does not mean has a level beyond all.
    """
    texts, raw = [word.text for word in run], tuple(unfolded(word.typed) for word in run)
    keys, is_word = {" ".join(texts), "".join(texts)}, len(run) == 1
    levels: list[tuple[int, int]] = [(99, 0)]
    for (level, text, language), bare in _parsed(names):
        if not is_word and level > Level.STEM:
            continue
        if language is None:
            if text in keys:
                levels.append((level, 0))
            elif is_word and " " not in text and text.startswith(texts[0]) and is_part_evidence(texts[0]):
                levels.append((Level.BEGINNING, 0))
        else:
            stems, are_bare = _stems(language, raw)
            if (bare if are_bare else text) in stems:
                levels.append((level, 0))
        if is_word and level <= Level.STEM and (language is None or len(bare) >= 4):
            known = text if language is None else bare
            levels += ((Level.ENDING, length) for length, forms in _endings(texts[0], language) if known in forms)
    best = min(level for level, _ in levels)
    return best, max(length for level, length in levels if level == best)


@lru_cache(maxsize=1024)
def _stems(language: str, typed: tuple[str, ...]) -> tuple[set[str], bool]:
    """The stems of words, and whether they have no marks, so that those of names do not count."""
    stems = {" ".join(stem(language, word) for word in typed), stem(language, "".join(typed))}
    return stems, all(unmarked(word) == word for word in typed)


@lru_cache(maxsize=1024)
def _endings(text: str, language: str | None) -> list[tuple[int, set[str]]]:
    """The length and forms of each ending of a word, or of what is left of it before a word for a shop."""
    return [(len(end), {end} if language is None else {end, stem(language, end)}) for end in _rests(text)]


@lru_cache(maxsize=1024)
def _rests(text: str) -> list[str]:
    whole = [(text[:end], 0) for shop in SHOP_ENDINGS if text.endswith(shop) and (end := len(text) - len(shop))]
    rests = [rest[start:] for rest, first in [(text, 1), *whole] for start in range(first, len(rest))]
    return [rest for rest in rests if len(rest) >= 4 or is_ideographic(rest)]
