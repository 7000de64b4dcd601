"""The words by which a category is found: of its display name, its slug, and its other names (M5, M9, M10)."""

from collections.abc import Iterable
from typing import Final

from index_mappings.text import scripts_of, words_of
from index_mappings.tiers import OTHER_NAME_MIN

# How Unicode's names of Han and kana letters begin.
_DENSE: Final = frozenset(("CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA"))


def category_words(slug: str, name: str, other_names: Iterable[str]) -> tuple[str, ...]:
    """The folded words of a category, sorted, each once.

    Args:
        slug: its slug.
        name: its display name.
        other_names: names in other languages, and synonyms. Their short words are left out: `de`, `og` and the like
            would say the category to everybody who types them.
    """
    own = {*words_of(name), *words_of(slug)}
    others = {word for other in other_names for word in words_of(other)}
    return tuple(sorted(own.union(filter(_says_enough, others))))


def _says_enough(word: str) -> bool:
    return len(word) >= OTHER_NAME_MIN or not _DENSE.isdisjoint(scripts_of(word))
