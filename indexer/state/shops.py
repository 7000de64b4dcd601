"""The shops of the state: the newest record of each, who has which domain, and the categories that they carry (V1, R1).

Only a shop that passes the gate claims a domain; of several the best rank has it. Those that have theirs are public.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from index_mappings.rank import rank_key
from indexer.records.related import CategoryNamesRecord
from indexer.records.shop import ShopRecord
from indexer.records.visibility import is_public
from indexer.sources.protocol import NO_ORDER, Order, order_of
from indexer.state.schema import KeyTwiceError, Origin, Presence, order_from

# Rank order is popularity descending, then id: exactly the order in which a domain is won.
RIGHTFUL_WINNERS: Final = """
SELECT id, rank, domain, line FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY domain ORDER BY rank) AS place FROM shops WHERE shown
) WHERE place = 1
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
_PUT: Final = "INSERT INTO shops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_WRITE: Final = "INSERT OR REPLACE INTO shops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class CarriedCategory:
    """A category that a public shop carries.

    Attributes:
        slug: the slug.
        name: the display name: the catalogue's own; else the one that most shops give it, of equally many the smaller.
        count: how many public shops carry it.
        names: how many display names shops give to it; 1 where the catalogue's own is shown.
        other_names: what else the catalogue calls it.
    """

    slug: str
    name: str
    count: int
    names: int
    other_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShopRow:
    """What the state knows of a shop.

    Attributes:
        id: its id.
        order: of its newest record.
        origin, line: where that came from.
        presence: whether it is there, or a tombstone.
        shown: whether it passes the gate.
        domain: the domain that it claims; None unless it is shown.
        text: the record as JSON; None of a tombstone.
    """

    id: str
    order: Order
    origin: Origin
    line: int
    presence: Presence
    shown: bool
    rank: str | None
    domain: str | None
    text: str | None

    @classmethod
    def of(cls, shop: ShopRecord, order: Order, origin: Origin, line: int) -> "ShopRow":
        """The row of a record."""
        shown = is_public(shop)
        rank = rank_key(shop.popularity, shop.id) if shown else None
        domain = shop.domain if shown else None
        return cls(shop.id, order, origin, line, Presence.THERE, shown, rank, domain, shop.model_dump_json())

    @classmethod
    def tombstone(cls, shop_id: str, order: Order) -> "ShopRow":
        """The row of a shop that a change deleted."""
        return cls(shop_id, order, Origin.CHANGE, 0, Presence.DELETED, shown=False, rank=None, domain=None, text=None)

    @property
    def record(self) -> ShopRecord | None:
        """The record."""
        return None if self.text is None else ShopRecord.model_validate_json(self.text)


class StateShops:
    """Put all of a catalogue, settle once, then read and change."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(self, shop: ShopRecord, line: int) -> bool:
        """Keep a catalogue's record if it is the newest of its key; nothing is settled yet.

        Returns:
            Whether the key was new; False when one of two records was dropped as the older one.

        Raises:
            KeyTwiceError: the key came before, and the versions do not differ.
        """
        row = ShopRow.of(shop, order_of(shop), Origin.CATALOGUE, line)
        if self._db.execute(_PUT, _columns(row)).rowcount:
            return True
        asked = "SELECT kind, number, line FROM shops WHERE id = ?"
        kind, number, first_line = self._db.execute(asked, (shop.id,)).fetchone()
        known = order_from(kind, number)
        if known == row.order or NO_ORDER in (known, row.order):
            if not row.shown:
                # Nobody knows which of the two holds: a build that passes over bad records must not show the shop.
                self.write(row)
            raise KeyTwiceError(first_line)
        if known < row.order:
            self.write(row)
        return False

    def write(self, row: ShopRow) -> None:
        """Keep a row in the place of any with its id."""
        self._db.execute(_WRITE, _columns(row))

    def settle(self) -> None:
        """Decide who has which domain, and count the categories, from nothing."""
        self._db.execute("DELETE FROM winners")
        self._db.execute("DELETE FROM category_names")
        self._db.execute(f"INSERT INTO winners {RIGHTFUL_WINNERS}")
        self._db.execute(f"INSERT INTO category_names {COUNTED_CATEGORIES}")

    def row(self, shop_id: str) -> ShopRow | None:
        """What is known of a shop, public or not."""
        found = self._db.execute("SELECT * FROM shops WHERE id = ?", (shop_id,)).fetchone()
        if found is None:
            return None
        key, kind, number, origin, line, presence, shown, rank, domain, text = found
        return ShopRow(
            key, order_from(kind, number), Origin(origin), line, Presence(presence), bool(shown), rank, domain, text
        )

    def public(self, shop_id: str) -> ShopRecord | None:
        """A shop's record, if it is public."""
        row = self._db.execute("SELECT record FROM winners JOIN shops USING (id) WHERE id = ?", (shop_id,)).fetchone()
        return None if row is None else ShopRecord.model_validate_json(row[0])

    def winners(self) -> Iterator[ShopRecord]:
        """The public shops in the order of their rank (M1)."""
        rows = self._db.execute("SELECT record FROM winners JOIN shops USING (id) ORDER BY winners.rank")
        return (ShopRecord.model_validate_json(record) for (record,) in rows)

    def winners_and_ties(self) -> Iterator[tuple[ShopRecord, bool, bool]]:
        """The same shops, each with whether it has offers and whether redirects are stated of its domain."""
        for record, offers, redirects in self._db.execute(_WITH_TIES):
            yield ShopRecord.model_validate_json(record), bool(offers), bool(redirects)

    def has_domain(self, domain: str) -> str | None:
        """The public shop that has a domain: its id."""
        row = self._db.execute("SELECT id FROM winners WHERE domain = ?", (domain,)).fetchone()
        return None if row is None else str(row[0])

    def count(self) -> int:
        """How many shops are public."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM winners").fetchone()
        return int(count)

    def public_ids(self) -> Iterator[str]:
        """Their ids, in the order of the ids: all that an index may hold."""
        return (shop_id for (shop_id,) in self._db.execute("SELECT id FROM winners ORDER BY id"))

    def lost_domains(self, most: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """Shops that pass the gate without having their domain.

        Returns:
            The lines of the first ones with the lines of those that have it, and how many there are.
        """
        (count,) = self._db.execute(_COUNT_LOST).fetchone()
        return tuple(self._db.execute(_LOST, (most,))), int(count)

    def categories(self) -> Iterator[CarriedCategory]:
        """The categories of the public shops, by slug."""
        for slug, rows in groupby(self._db.execute(f"{_CARRIED} {_IN_ORDER}"), key=itemgetter(0)):
            yield _carried(slug, list(rows))

    def category(self, slug: str) -> CarriedCategory | None:
        """One category; None when no public shop carries it."""
        named = self._db.execute(f"{_CARRIED} WHERE slug = ? {_IN_ORDER}", (slug,)).fetchall()
        return _carried(slug, named) if named else None


def _columns(row: ShopRow) -> tuple[object, ...]:
    order, number = row.order
    return row.id, order, number, row.origin, row.line, row.presence, row.shown, row.rank, row.domain, row.text


def _carried(slug: str, named: list[tuple[str, str, int, str | None]]) -> CarriedCategory:
    count = sum(shops for _, _, shops, _ in named)
    _, most_frequent, _, text = named[0]
    if text is None:
        return CarriedCategory(slug, most_frequent, count, len(named))
    stated = CategoryNamesRecord.model_validate_json(text)
    if stated.name is None:
        return CarriedCategory(slug, most_frequent, count, len(named), stated.other_names)
    return CarriedCategory(slug, stated.name, count, 1, stated.other_names)
