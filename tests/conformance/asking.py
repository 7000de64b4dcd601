"""Asking a directory as a person does: in a line, with what is not said left at its default (M1 to M10)."""

from collections.abc import Iterable

from index_mappings.documents import Shop
from service.search.protocol import FindQuery, Found, Snapshot, Suggested, SuggestQuery


async def find(
    directory: Snapshot,
    text: str,
    *,
    country: str | None = None,
    category: str | None = None,
    offset: int = 0,
    limit: int = 50,
) -> Found:
    """Search shops."""
    return await directory.find(FindQuery(text, country, category, offset, limit))


async def suggest(directory: Snapshot, text: str, *, country: str | None = None, limit: int = 20) -> Suggested:
    """Ask for suggestions."""
    return await directory.suggest(SuggestQuery(text, country, limit))


async def found_names(directory: Snapshot, text: str, *, country: str | None = None) -> list[str]:
    """The names that a search finds, in order, after a look that its total says the same."""
    found = await find(directory, text, country=country)
    assert found.total == len(found.shops), text
    return names(found.shops)


async def ladder(
    directory: Snapshot, text: str, *, country: str | None = None, limit: int = 20
) -> list[tuple[int, str]]:
    """The suggested shops: tier and name, in order."""
    suggested = await suggest(directory, text, country=country, limit=limit)
    return [(int(suggestion.tier), suggestion.shop.name) for suggestion in suggested.shops]


def names(shops: Iterable[Shop]) -> list[str]:
    """The names of shops, in order."""
    return [shop.name for shop in shops]
