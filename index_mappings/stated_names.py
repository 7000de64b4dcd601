"""The names of a shop as its source states them, to be compared with those of another shop (A12).

Being found is generous: `forms.whole_names` holds transliterations, joined spellings and names without their article
too. Two shops that meet only there need not have one name.
"""

from collections.abc import Iterable

from index_mappings.documents import Shop
from index_mappings.spellings import spellings
from index_mappings.text import fold


def stated_names(name: str, aliases: Iterable[str]) -> frozenset[str]:
    """The spaced folded forms of a name and its aliases, without transliteration."""
    return frozenset(form for text in (name, *aliases) for form in map(fold, spellings(text)) if form)


def shared_names(first: Shop, second: Shop) -> frozenset[str]:
    """The names that both shops state (A12's "same name"); empty where there are none."""
    return stated_names(first.name, first.aliases) & stated_names(second.name, second.aliases)
