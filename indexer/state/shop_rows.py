"""The shops of the state: the owners of domains, and the carried categories (V1, R1).

Only a shop with public visibility claims its domain; among several the best rank wins it. The winners are public.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from index_mappings.category_forms import Named
from indexer.records.related import CategoryNamesRecord
from indexer.records.shop import ShopRecord

# Rank order is popularity descending, then id, which also decides between claims on a domain.
# The rows are read in the order of the file and sorted: with an index they would be read in a random order.
DOMAIN_WINNERS: Final = """
SELECT id, rank, domain, line FROM (
    SELECT id, rank, domain, line, ROW_NUMBER() OVER (PARTITION BY domain ORDER BY rank) AS position
    FROM shops NOT INDEXED WHERE shown
) WHERE position = 1
"""
COUNTED_CATEGORIES: Final = """
SELECT value ->> 'slug' AS slug, value ->> 'name' AS name, COUNT(*)
FROM winners JOIN shops USING (id), json_each(shops.record, '$.categories') GROUP BY slug, name
"""
_CARRIED: Final = """
SELECT slug, name, shops, record FROM category_names
LEFT JOIN belongings ON type = 'categories' AND key = slug AND presence = 0
"""
_IN_ORDER: Final = "ORDER BY slug, shops DESC, name"
_LOST: Final = """
SELECT shops.line, winners.line FROM shops JOIN winners USING (domain)
WHERE shops.shown AND shops.id <> winners.id ORDER BY shops.line LIMIT ?
"""
_WITH_TIES: Final = """
SELECT record,
    EXISTS (SELECT 1 FROM belongings WHERE owner = winners.id AND type = 'offers'),
    EXISTS (SELECT 1 FROM belongings WHERE owner = winners.domain AND type = 'redirects')
        OR EXISTS (SELECT 1 FROM belongings WHERE other = winners.domain AND type = 'redirects')
FROM winners JOIN shops USING (id) ORDER BY winners.rank
"""
_COUNT_LOST: Final = "SELECT (SELECT COUNT(*) FROM shops WHERE shown) - (SELECT COUNT(*) FROM winners)"
_COUNT_HIDDEN: Final = "SELECT COUNT(*) FROM shops WHERE presence = 0 AND NOT shown"


@dataclass(frozen=True, slots=True)
class CarriedCategory:
    """A category that a public shop carries.

    Attributes:
        slug: the slug.
        name: the display name: the catalogue's own; else the most frequent one of the shops, of equals the smaller.
        count: the number of public shops that carry it.
        names: the number of display names that shops use; 1 if the catalogue's own is shown.
        other_names: its other names in the catalogue, each with its language.
    """

    slug: str
    name: str
    count: int
    names: int
    other_names: tuple[Named, ...] = ()


class StateShops:
    """The shops: settle once those of a catalogue, then read the public ones."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def settle(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Compute the owners of all domains and the categories again; `meanwhile` is called after each statement."""
        for statement in (
            "DELETE FROM winners",
            "DELETE FROM category_names",
            f"INSERT INTO winners {DOMAIN_WINNERS}",
            f"INSERT INTO category_names {COUNTED_CATEGORIES}",
        ):
            self._db.execute(statement)
            meanwhile()

    def public(self, shop_id: str) -> ShopRecord | None:
        """A shop's record, if it is public."""
        row = self._db.execute("SELECT record FROM winners JOIN shops USING (id) WHERE id = ?", (shop_id,)).fetchone()
        return None if row is None else ShopRecord.model_validate_json(row[0])

    def winners(self) -> Iterator[tuple[ShopRecord, bool, bool]]:
        """The public shops in the order of their rank (M1), and whether each has offers and its domain redirects."""
        for record, offers, redirects in self._db.execute(_WITH_TIES):
            yield ShopRecord.model_validate_json(record), bool(offers), bool(redirects)

    def by_line(self) -> Iterator[tuple[int, ShopRecord]]:
        """The public shops with their lines in the catalogue, in the order of the lines."""
        for line, record in self._db.execute(
            "SELECT shops.line, record FROM winners JOIN shops USING (id) ORDER BY shops.line"
        ):
            yield line, ShopRecord.model_validate_json(record)

    def domain_holder(self, domain: str) -> str | None:
        """The id of the public shop that has a domain."""
        row = self._db.execute("SELECT id FROM winners WHERE domain = ?", (domain,)).fetchone()
        return None if row is None else str(row[0])

    def count(self) -> int:
        """The number of public shops."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM winners").fetchone()
        return int(count)

    def count_hidden(self) -> int:
        """The number of shops whose newest record is not public; tombstones are no shops."""
        (count,) = self._db.execute(_COUNT_HIDDEN).fetchone()
        return int(count)

    def public_ids(self) -> Iterator[str]:
        """The ids of the public shops in order: an index may hold no others."""
        return (shop_id for (shop_id,) in self._db.execute("SELECT id FROM winners ORDER BY id"))

    def lost_domains(self, limit: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """Shops with public visibility that did not win their domain.

        Returns the lines of the first ones with the lines of the winners, and the number of all.
        """
        (count,) = self._db.execute(_COUNT_LOST).fetchone()
        return tuple(self._db.execute(_LOST, (limit,))), int(count)

    def categories(self) -> Iterator[CarriedCategory]:
        """The categories of the public shops, by slug."""
        for slug, rows in groupby(self._db.execute(f"{_CARRIED} {_IN_ORDER}"), key=itemgetter(0)):
            yield _carried(slug, list(rows))

    def category(self, slug: str) -> CarriedCategory | None:
        """One category; None when no public shop carries it."""
        named = self._db.execute(f"{_CARRIED} WHERE slug = ? {_IN_ORDER}", (slug,)).fetchall()
        return _carried(slug, named) if named else None


def _carried(slug: str, named: list[tuple[str, str, int, str | None]]) -> CarriedCategory:
    count = sum(shops for _, _, shops, _ in named)
    _, most_frequent, _, text = named[0]
    if text is None:
        return CarriedCategory(slug, most_frequent, count, len(named))
    stated = CategoryNamesRecord.model_validate_json(text)
    if stated.name is None:
        return CarriedCategory(slug, most_frequent, count, len(named), stated.other_names)
    return CarriedCategory(slug, stated.name, count, 1, stated.other_names)
