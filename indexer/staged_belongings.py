"""Coupons, offers and the other records of shops, sorted out by key and kept only where their shop is public (V1).

Of a record whose shop is not public only the key and the version are kept, as it may replace an older one that moved.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Final

from index_mappings.moments import microseconds
from index_mappings.rank import newest_first_key
from indexer.belongings import (
    BELONGINGS,
    AffiliateProgramRecord,
    Belonging,
    CouponRecord,
    OfferRecord,
    RedirectRecord,
    ShippingRecord,
    TrustRecord,
)
from indexer.records import ShopRecord
from indexer.staging import KeyTwiceError

_SCHEMA: Final = """
CREATE TABLE belongings (
    type TEXT, key TEXT, version INTEGER, line INTEGER NOT NULL, owner TEXT, rank TEXT, record TEXT,
    PRIMARY KEY (type, key)
) WITHOUT ROWID;
CREATE INDEX owned ON belongings (type, owner, rank);
"""
_OWNED: Final = "SELECT record FROM belongings WHERE type = ? AND owner = ? ORDER BY rank, key"
_WITH_SHOP: Final = """
SELECT belongings.record, shops.record FROM belongings JOIN shops ON shops.id = belongings.owner
WHERE type = ? AND belongings.record IS NOT NULL ORDER BY belongings.rank, key
"""
_REDIRECTS: Final = """
SELECT record FROM belongings WHERE type = 'redirects' AND owner = ?1
UNION ALL SELECT record FROM belongings WHERE type = 'redirected' AND owner = ?1 ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class _Row:
    type: str
    key: str
    version: int | None
    line: int
    owner: str | None
    rank: str | None
    record: str | None


class StagedBelongings:
    """The records of public shops; made once the public shops are settled."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._db.executescript(_SCHEMA)
        self._db.execute("BEGIN")

    def put(self, kind: str, record: Belonging, line: int) -> bool:
        """Keep a record if it is the newest of its key.

        Returns:
            Whether it belongs to a public shop.

        Raises:
            KeyTwiceError: the key came before, and the versions do not differ.
        """
        public = self._is_public_shop(record.shop_id)
        rank = newest_first_key(_stated_at(record), record.key) if isinstance(record, OfferRecord) else None
        text = record.model_dump_json() if public else None
        self._keep(_Row(kind, record.key, record.order, line, record.shop_id, rank, text))
        return public

    def put_redirect(self, record: RedirectRecord, line: int) -> bool:
        """Keep a redirect if both of its ends are public shops (A12)."""
        ends = (record.from_domain, record.to_domain)
        public = len(set(ends)) == len(ends) and all(map(self._is_public_domain, ends))
        text = record.model_dump_json() if public else None
        # Twice, so that each end finds it.
        for kind, owner in zip(("redirects", "redirected"), ends, strict=True):
            self._keep(_Row(kind, record.key, record.order, line, owner, None, text))
        return public

    def count(self, kind: str) -> int:
        """How many records of a kind belong to public shops."""
        asked = "SELECT COUNT(*) FROM belongings WHERE type = ? AND record IS NOT NULL"
        (count,) = self._db.execute(asked, (kind,)).fetchone()
        return int(count)

    def keys(self, kind: str) -> Iterator[str]:
        """Their keys."""
        rows = self._db.execute("SELECT key FROM belongings WHERE type = ? AND record IS NOT NULL", (kind,))
        return (key for (key,) in rows)

    def coupons(self) -> Iterator[tuple[CouponRecord, ShopRecord]]:
        """All coupons with their shops."""
        for record, shop in self._db.execute(_WITH_SHOP, ("coupons",)):
            yield CouponRecord.model_validate_json(record), ShopRecord.model_validate_json(shop)

    def offers(self) -> Iterator[tuple[OfferRecord, ShopRecord, AffiliateProgramRecord | None]]:
        """All offers with their shops and the shops' programmes."""
        for record, shop in self._db.execute(_WITH_SHOP, ("offers",)):
            offer = OfferRecord.model_validate_json(record)
            yield offer, ShopRecord.model_validate_json(shop), self._program(offer.shop_id)

    def newest_offers(self, shop_id: str, most: int) -> tuple[tuple[OfferRecord, ...], int]:
        """A shop's newest offers, and how many it has."""
        rows = self._db.execute(f"{_OWNED} LIMIT ?", ("offers", shop_id, most)).fetchall()
        counting = "SELECT COUNT(*) FROM belongings WHERE type = 'offers' AND owner = ?"
        (count,) = self._db.execute(counting, (shop_id,)).fetchone()
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
        """The redirects that lead from or to a domain."""
        return tuple(
            RedirectRecord.model_validate_json(record) for (record,) in self._db.execute(_REDIRECTS, (domain,))
        )

    def _program(self, shop_id: str) -> AffiliateProgramRecord | None:
        # The key is shop and network: of several programmes the first network by name.
        row = self._db.execute(_OWNED, ("affiliate_programs", shop_id)).fetchone()
        return AffiliateProgramRecord.model_validate_json(row[0]) if row else None

    def _keep(self, row: "_Row") -> None:
        asked = "SELECT version, line FROM belongings WHERE type = ? AND key = ?"
        if before := self._db.execute(asked, (row.type, row.key)).fetchone():
            known, first_line = before
            if known is None or row.version is None or known == row.version:
                raise KeyTwiceError(first_line)
            if known > row.version:
                return
        if row.record is None:
            row = replace(row, owner=None, rank=None)
        self._db.execute("INSERT OR REPLACE INTO belongings VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(row))

    def _is_public_shop(self, shop_id: str) -> bool:
        return self._db.execute("SELECT 1 FROM winners WHERE id = ?", (shop_id,)).fetchone() is not None

    def _is_public_domain(self, domain: str) -> bool:
        return self._db.execute("SELECT 1 FROM winners WHERE domain = ?", (domain,)).fetchone() is not None


def _stated_at(offer: OfferRecord) -> int | None:
    return None if offer.updated_at is None else microseconds(offer.updated_at)


KINDS: Final = (*BELONGINGS, "redirects")
