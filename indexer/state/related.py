"""Coupons, offers and the other records of shops in the state: all are kept, those of public shops are read (V1).

A belonging of a shop that is not public waits here, so that it comes back with its shop (G3).
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from index_mappings.rank import newest_first_key
from index_mappings.timestamps import microseconds
from indexer.records.related import (
    BELONGINGS,
    AffiliateProgramRecord,
    CategoryNamesRecord,
    CouponRecord,
    OfferRecord,
    RedirectRecord,
    ResourceAccountRecord,
    ShippingRecord,
    TrustRecord,
)
from indexer.records.shop import Record, ShopRecord
from indexer.sources.protocol import NO_ORDER, Order, order_of
from indexer.state.schema import KeyTwiceError, Origin, Presence, order_from

_OWNED: Final = "SELECT record FROM belongings WHERE type = ? AND owner = ? ORDER BY rank, key"
_PUBLIC: Final = "FROM belongings JOIN winners ON winners.id = owner WHERE type = ?"
_OF_PUBLIC: Final = "FROM belongings JOIN winners ON winners.id = owner JOIN shops ON shops.id = owner WHERE type = ?"
_REDIRECTS: Final = """
SELECT record FROM belongings JOIN winners ON winners.domain = other WHERE type = 'redirects' AND owner = ?1
UNION ALL
SELECT record FROM belongings JOIN winners ON winners.domain = owner WHERE type = 'redirects' AND other = ?1 ORDER BY 1
"""
_BOTH_ENDS: Final = """
FROM belongings JOIN winners AS one ON one.domain = owner JOIN winners AS two ON two.domain = other
WHERE type = 'redirects'
"""
_COUNT_CARRIED: Final = """
SELECT COUNT(*) FROM belongings WHERE type = 'categories' AND presence = 0 AND key IN (SELECT slug FROM category_names)
"""
# The public shops in the order of their rank, each once for each of its statements and at least once.
_FACTS: Final = """
SELECT winners.id, winners.domain, type, record FROM winners
LEFT JOIN belongings ON owner = winners.id AND type IN ('shipping', 'trust')
ORDER BY winners.rank, type, belongings.rank, key
"""
_PUT: Final = "INSERT INTO belongings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_WRITE: Final = "INSERT OR REPLACE INTO belongings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class ShopKey:
    """What names a public shop: its id and its domain."""

    id: str
    domain: str


@dataclass(frozen=True, slots=True)
class RelatedRow:
    """What the state knows of a belonging.

    Attributes:
        type, key: which one.
        order: of its newest record.
        origin, line: where that came from.
        presence: whether it is there, or a tombstone.
        owner: the shop's id; of a redirect the domain that it leads from; None of all others and of tombstones.
        other: of a redirect the domain that it leads to.
        rank: of an offer its place among the shop's.
        text: the record as JSON.
    """

    type: str
    key: str
    order: Order
    origin: Origin
    line: int
    presence: Presence
    owner: str | None
    other: str | None
    rank: str | None
    text: str | None

    @classmethod
    def of(cls, kind: str, record: Record, order: Order, origin: Origin, line: int) -> "RelatedRow":
        """The row of a record."""
        key: str = record.key  # type: ignore[attr-defined]  # every record but a change has one
        owner, other = _ends(record)
        rank = newest_first_key(_stated_at(record), key) if isinstance(record, OfferRecord) else None
        return cls(kind, key, order, origin, line, Presence.THERE, owner, other, rank, record.model_dump_json())

    @classmethod
    def tombstone(cls, kind: str, key: str, order: Order) -> "RelatedRow":
        """The row of a belonging that a change deleted."""
        return cls(kind, key, order, Origin.CHANGE, 0, Presence.DELETED, None, None, None, None)


class StateRelatedRecords:
    """The records of shops."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(self, kind: str, record: Record, line: int) -> bool:
        """Keep a catalogue's record if it is the newest of its key.

        Returns:
            Whether the key was new.

        Raises:
            KeyTwiceError: the key came before, and the versions do not differ.
        """
        row = RelatedRow.of(kind, record, order_of(record), Origin.CATALOGUE, line)
        if self._db.execute(_PUT, _columns(row)).rowcount:
            return True
        asked = "SELECT kind, number, line FROM belongings WHERE type = ? AND key = ?"
        known_kind, number, first_line = self._db.execute(asked, (kind, row.key)).fetchone()
        known = order_from(known_kind, number)
        if known == row.order or NO_ORDER in (known, row.order):
            raise KeyTwiceError(first_line)
        if known < row.order:
            self.write(row)
        return False

    def write(self, row: RelatedRow) -> None:
        """Keep a row in the place of any with its key."""
        self._db.execute(_WRITE, _columns(row))

    def row(self, kind: str, key: str) -> RelatedRow | None:
        """What is known of a belonging, whoever owns it."""
        found = self._db.execute("SELECT * FROM belongings WHERE type = ? AND key = ?", (kind, key)).fetchone()
        if found is None:
            return None
        _, _, order_kind, number, origin, line, presence, owner, other, rank, text = found
        order = order_from(order_kind, number)
        return RelatedRow(kind, key, order, Origin(origin), line, Presence(presence), owner, other, rank, text)

    def count(self, kind: str) -> int:
        """How many records of a kind belong to public shops."""
        (count,) = self._db.execute(f"SELECT COUNT(*) {_PUBLIC}", (kind,)).fetchone()
        return int(count)

    def left_out(self, kind: str) -> int:
        """How many records of a kind are of no public shop: of redirects, do not lead from one to another one."""
        if kind not in (*BELONGINGS, "redirects", "categories"):
            return 0
        (there,) = self._db.execute(
            "SELECT COUNT(*) FROM belongings WHERE type = ? AND presence = 0", (kind,)
        ).fetchone()
        if kind == "redirects":
            (public,) = self._db.execute(f"SELECT COUNT(*) {_BOTH_ENDS} AND owner <> other").fetchone()
            return int(there) - int(public)
        if kind == "categories":
            (carried,) = self._db.execute(_COUNT_CARRIED).fetchone()
            return int(there) - int(carried)
        return int(there) - self.count(kind)

    def without_shop(self, kind: str, most: int) -> list[int]:
        """The lines of the first records of a kind, redirects and accounts excepted, whose shop the state has not."""
        asked = (
            "SELECT line FROM belongings WHERE type = ? AND presence = 0 AND owner NOT IN (SELECT id FROM shops)"
            " ORDER BY line LIMIT ?"
        )
        return [line for (line,) in self._db.execute(asked, (kind, most))]

    def keys(self, kind: str) -> Iterator[str]:
        """The keys of those that belong to public shops, in order."""
        return (key for (key,) in self._db.execute(f"SELECT key {_PUBLIC} ORDER BY key", (kind,)))

    def coupons(self) -> Iterator[tuple[CouponRecord, ShopRecord]]:
        """All coupons of public shops with their shops."""
        for record, shop in self._db.execute(f"SELECT belongings.record, shops.record {_OF_PUBLIC}", ("coupons",)):
            yield CouponRecord.model_validate_json(record), _shop(shop)

    def offers(self) -> Iterator[tuple[OfferRecord, ShopRecord, AffiliateProgramRecord | None]]:
        """All offers of public shops with their shops and the shops' programmes."""
        asked = f"SELECT belongings.record, shops.record {_OF_PUBLIC}"
        for record, shop in self._db.execute(asked, ("offers",)):
            offer = OfferRecord.model_validate_json(record)
            yield offer, _shop(shop), self.program(offer.shop_id)

    def facts(self) -> Iterator[tuple[ShopKey, ShippingRecord | None, tuple[TrustRecord, ...]]]:
        """All public shops in the order of their rank, with their shipping statements and trust rows."""
        for (shop_id, domain), rows in groupby(self._db.execute(_FACTS), key=itemgetter(0, 1)):
            shipping: ShippingRecord | None = None
            trust: list[TrustRecord] = []
            for _, _, kind, record in rows:
                if kind == "shipping":
                    shipping = ShippingRecord.model_validate_json(record)
                elif kind == "trust":
                    trust.append(TrustRecord.model_validate_json(record))
            yield ShopKey(shop_id, domain), shipping, tuple(trust)

    def newest_offers(self, shop_id: str, most: int) -> tuple[tuple[OfferRecord, ...], int]:
        """A shop's newest offers, and how many it has."""
        rows = self._db.execute(f"{_OWNED} LIMIT ?", ("offers", shop_id, most)).fetchall()
        counting = "SELECT COUNT(*) FROM belongings WHERE type = 'offers' AND owner = ?"
        (count,) = self._db.execute(counting, (shop_id,)).fetchone() if len(rows) == most else (len(rows),)
        return tuple(OfferRecord.model_validate_json(record) for (record,) in rows), count

    def shipping(self, shop_id: str) -> ShippingRecord | None:
        """A shop's shipping statement."""
        row = self._db.execute(_OWNED, ("shipping", shop_id)).fetchone()
        return ShippingRecord.model_validate_json(row[0]) if row else None

    def trust(self, shop_id: str) -> tuple[TrustRecord, ...]:
        """A shop's trust rows."""
        rows = self._db.execute(_OWNED, ("trust", shop_id))
        return tuple(TrustRecord.model_validate_json(record) for (record,) in rows)

    def redirects(self, domain: str) -> tuple[RedirectRecord, ...]:
        """The redirects that lead from or to a public shop's domain, from or to another public shop (A12)."""
        found = (RedirectRecord.model_validate_json(record) for (record,) in self._db.execute(_REDIRECTS, (domain,)))
        return tuple(redirect for redirect in found if redirect.from_domain != redirect.to_domain)

    def linked_domains(self, domain: str) -> Iterable[str]:
        """The domains at the other ends of a domain's redirects, whoever has them."""
        asked = """
        SELECT other FROM belongings WHERE type = 'redirects' AND owner = ?1
        UNION SELECT owner FROM belongings WHERE type = 'redirects' AND other = ?1
        """
        return [end for (end,) in self._db.execute(asked, (domain,))]

    def accounts(self) -> tuple[ResourceAccountRecord, ...]:
        """The operator's accounts with outside providers, by provider, then account."""
        asked = "SELECT record FROM belongings WHERE type = ? AND presence = ?"
        found = self._db.execute(asked, ("resource_accounts", Presence.THERE))
        accounts = [ResourceAccountRecord.model_validate_json(record) for (record,) in found]
        return tuple(sorted(accounts, key=lambda account: (account.provider, account.account)))

    def program(self, shop_id: str) -> AffiliateProgramRecord | None:
        """A shop's programme: of several the first network by name, as the key is shop and network."""
        row = self._db.execute(_OWNED, ("affiliate_programs", shop_id)).fetchone()
        return AffiliateProgramRecord.model_validate_json(row[0]) if row else None


@lru_cache(maxsize=64)
def _shop(text: str) -> ShopRecord:
    """The shop of a belonging: belongings of one shop often follow one another."""
    return ShopRecord.model_validate_json(text)


def _columns(row: RelatedRow) -> tuple[object, ...]:
    order, number = row.order
    return (
        row.type, row.key, order, number, row.origin, row.line, row.presence, row.owner, row.other, row.rank, row.text,
    )  # fmt: skip


def _ends(record: Record) -> tuple[str | None, str | None]:
    if isinstance(record, RedirectRecord):
        return record.from_domain, record.to_domain
    if isinstance(record, (ResourceAccountRecord, CategoryNamesRecord)):
        return None, None
    owner: str = record.shop_id  # type: ignore[attr-defined]  # of all the others
    return owner, None


def _stated_at(offer: OfferRecord) -> int | None:
    return None if offer.updated_at is None else microseconds(offer.updated_at)
