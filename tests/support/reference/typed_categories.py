"""The categories of a query that is being typed in their simplest form (M10), for the oracle."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from rapidfuzz.distance import OSA

from index_mappings.category_forms import Level, LevelledForm, stem, unmarked
from index_mappings.documents import CategoryEntry
from index_mappings.forms import QueryForms
from index_mappings.table_words import SHOP_ENDINGS, SHOP_WORDS, TABLE_WORDS
from index_mappings.text import fold, is_ideographic
from shop_directory.words.query_words import QueryWord

# The words of a reading, each folded and with its marks.
_Words = Sequence[tuple[str, str]]
# Table words as names have them.
_TABLE = frozenset(map(fold, TABLE_WORDS))
# The best level of a run of words, and the slugs of the categories that have it.
_Best = Callable[[Sequence[QueryWord]], tuple[Level, list[str]]]


def typed_categories(entries: Sequence[CategoryEntry], query: QueryForms, best: _Best) -> list[CategoryEntry]:
    """All categories of a query with words, the best first."""
    words = list(zip(query.words, query.marked or query.words, strict=True))
    left = [word for word in words if word[1] not in TABLE_WORDS]
    shorter = left[:-1] if left and _begins_shop_word(left[-1][0]) else []
    # Next to other table words than those for a shop, a short word is more often the beginning of a name.
    named_below = 1 if any(word[1] in SHOP_WORDS for word in words) else 4
    later = [(left, named_below)] if left and len(left) < len(words) else []
    later += [(shorter, 1)] if shorter else []
    # A letter or two next to table words only are no beginning.
    whole = len(words) > 1 and len(left) < len(words) and not _has(left, 3)
    readings = [(words, whole, 1, 1), *((some, not _has(some, 3), 4, named) for some, named in later)]
    for reading, whole, *lengths in readings:
        found = _in_tiers(entries, reading, best, *lengths, whole=whole, worst=1)
        if found:
            return found
    for reading in (left, shorter):
        for start in range(1, len(reading)):
            last = reading[start:]
            if _has(last, 3) and (found := _in_tiers(entries, last, best, 4, 4, whole=False, worst=3)):
                return found
    for reading, whole, _, _ in readings:
        texts = [text for text in _keys(reading) if len(text) >= 5 and not whole]
        nearly = [
            entry
            for entry in entries
            if any(_begins_nearly(name, text) for level in (1, 2) for name in _texts(entry, level) for text in texts)
        ]
        if nearly:
            return nearly
    return []


def _in_tiers(
    entries: Sequence[CategoryEntry],
    words: _Words,
    best: _Best,
    own_below: int,
    named_below: int,
    *,
    whole: bool,
    worst: int,
) -> list[CategoryEntry]:
    """The categories of the tiers from `worst` on.

    Below the lengths only own names and whole names count, and only own names; `whole` excludes all but whole names.
    """
    level, slugs = best([QueryWord(text, marked, 0) for text, marked in words])
    ranked = []
    for place, entry in enumerate(entries):
        named = level if level <= Level.STEM and entry.slug in slugs else None
        tiers = list(_tiers(entry, words, named, has_beginnings=not whole, has_others=_has(words, own_below)))
        if not _has(words, named_below):
            tiers = [tier for tier in tiers if tier != 4]
        if tiers and max(tiers) >= worst:
            ranked.append((-max(tiers), place, entry))
    return [entry for _, _, entry in sorted(ranked, key=lambda one: one[:2])]


def _tiers(
    entry: CategoryEntry, words: _Words, named: Level | None, *, has_beginnings: bool, has_others: bool
) -> Iterator[int]:
    if named is not None:
        yield 6 if named is Level.OWN else 4
    if not has_beginnings:
        return
    keys = _keys(words)
    own, other, synonyms = (_texts(entry, level) for level in (1, 2, 3))
    if _any_begins(own, [f"{key} " for key in keys]):
        yield 5
    if _any_begins(own, keys):
        yield 3
    if _is_in_one(entry, words, (1,)):
        yield 2
    if has_others and _has(words, 2) and _any_begins(other, keys):
        yield 2
    if has_others and _has(words, 3) and (_any_begins(synonyms, keys) or _is_in_one(entry, words, (2, 3, 4))):
        yield 1


def _keys(words: _Words) -> list[str]:
    texts = [text for text, _ in words]
    return [" ".join(texts), "".join(texts)]


def _has(words: _Words, letters: int) -> bool:
    text = "".join(text for text, _ in words)
    return len(text) >= letters or is_ideographic(text)


def _begins_shop_word(text: str) -> bool:
    return len(text) >= 2 and any(word.startswith(text) for word in SHOP_ENDINGS)


@lru_cache(maxsize=1024)
def _forms(names: tuple[str, ...]) -> list[LevelledForm]:
    return [LevelledForm.from_term(term) for term in names]


def _texts(entry: CategoryEntry, level: int) -> list[str]:
    return [form.text for form in _forms(entry.names) if form.level == level and form.language is None]


def _any_begins(names: Sequence[str], keys: Sequence[str]) -> bool:
    return any(name.startswith(key) for name in names for key in keys)


def _is_in_one(entry: CategoryEntry, words: _Words, levels: Sequence[int]) -> bool:
    """Whether all words are in one name of several: all but the last equal its words or stems, the last begins one."""
    counted = set(_texts(entry, Level.WORD))
    for level, name, language in _forms(entry.names):
        if level not in levels or " " not in name:
            continue
        parts = name.split()
        if language is None:
            parts = [part for part in parts if part in counted or part not in _TABLE]
            whole = all(text in parts for text, _ in words[:-1])
        elif len(words) > 1:
            whole = all(_has_stem(language, marked, parts) for _, marked in words[:-1])
        else:
            continue
        if whole and any(fold(part).startswith(words[-1][0]) for part in parts):
            return True
    return False


def _has_stem(language: str, marked: str, stems: Sequence[str]) -> bool:
    bare = unmarked(marked) == marked
    return stem(language, marked) in [unmarked(one) if bare else one for one in stems]


def _begins_nearly(name: str, text: str) -> bool:
    """Whether some prefix of a name is at most one typing error away from the text."""
    return any(OSA.distance(text, name[:end], score_cutoff=1) <= 1 for end in range(len(name) + 1))
