"""The related records in the state: all are stored, those of public shops are read (V1).

The related records of a shop that is not public stay stored, so that they come back with the shop (G3).
"""

import sqlite3
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from indexer.records.related import (
    RELATED_RECORDS,
    AffiliateProgramRecord,
    CouponRecord,
    OfferRecord,
    RedirectRecord,
    ResourceAccountRecord,
    ShippingRecord,
    TrustRecord,
)
from indexer.records.shop import ShopRecord

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
# The public shops in the order of their rank, one row for each statement and at least one row for each shop.
_FACTS: Final = """
SELECT winners.id, winners.domain, type, record FROM winners
LEFT JOIN belongings ON owner = winners.id AND type IN ('shipping', 'trust')
ORDER BY winners.rank, type, belongings.rank, key
"""


class StateRelatedRecords:
    """The related records of public shops."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def count(self, kind: str) -> int:
        """The number of records of a kind that belong to public shops."""
        (count,) = self._db.execute(f"SELECT COUNT(*) {_PUBLIC}", (kind,)).fetchone()
        return int(count)

    def left_out(self, kind: str) -> int:
        """The number of records of a kind of no public shop; redirects have to lead from one to another one."""
        if kind not in (*RELATED_RECORDS, "redirects", "categories"):
            return 0
        (present,) = self._db.execute(
            "SELECT COUNT(*) FROM belongings WHERE type = ? AND presence = 0", (kind,)
        ).fetchone()
        if kind == "redirects":
            (public,) = self._db.execute(f"SELECT COUNT(*) {_BOTH_ENDS} AND owner <> other").fetchone()
            return int(present) - int(public)
        if kind == "categories":
            (carried,) = self._db.execute(_COUNT_CARRIED).fetchone()
            return int(present) - int(carried)
        return int(present) - self.count(kind)

    def without_shop(self, kind: str, limit: int) -> list[int]:
        """The lines of the first records of a kind (no redirects, no accounts) whose shop is not in the state."""
        query = (
            "SELECT line FROM belongings WHERE type = ? AND presence = 0 AND owner NOT IN (SELECT id FROM shops)"
            " ORDER BY line LIMIT ?"
        )
        return [line for (line,) in self._db.execute(query, (kind, limit))]

    def keys(self, kind: str) -> Iterator[str]:
        """The keys of the records of a kind that belong to public shops, in order."""
        return (key for (key,) in self._db.execute(f"SELECT key {_PUBLIC} ORDER BY key", (kind,)))

    def coupons(self) -> Iterator[tuple[CouponRecord, ShopRecord]]:
        """All coupons of public shops with their shops."""
        for record, shop in self._db.execute(f"SELECT belongings.record, shops.record {_OF_PUBLIC}", ("coupons",)):
            yield CouponRecord.model_validate_json(record), _shop(shop)

    def offers(self) -> Iterator[tuple[OfferRecord, ShopRecord, AffiliateProgramRecord | None]]:
        """All offers of public shops with their shops and the shops' programmes."""
        query = f"SELECT belongings.record, shops.record {_OF_PUBLIC}"
        for record, shop in self._db.execute(query, ("offers",)):
            offer = OfferRecord.model_validate_json(record)
            yield offer, _shop(shop), self.program(offer.shop_id)

    def facts(self) -> Iterator[tuple[str, str, ShippingRecord | None, tuple[TrustRecord, ...]]]:
        """Id, domain, shipping statement and trust rows of all public shops, in the order of their rank."""
        for (shop_id, domain), rows in groupby(self._db.execute(_FACTS), key=itemgetter(0, 1)):
            shipping: ShippingRecord | None = None
            trust: list[TrustRecord] = []
            for _, _, kind, record in rows:
                if kind == "shipping":
                    shipping = ShippingRecord.model_validate_json(record)
                elif kind == "trust":
                    trust.append(TrustRecord.model_validate_json(record))
            yield shop_id, domain, shipping, tuple(trust)

    def newest_offers(self, shop_id: str, limit: int) -> tuple[tuple[OfferRecord, ...], int]:
        """A shop's newest offers, and the number of all its offers."""
        rows = self._db.execute(f"{_OWNED} LIMIT ?", ("offers", shop_id, limit)).fetchall()
        query = "SELECT COUNT(*) FROM belongings WHERE type = 'offers' AND owner = ?"
        (count,) = self._db.execute(query, (shop_id,)).fetchone() if len(rows) == limit else (len(rows),)
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
        """The domains at the other ends of a domain's redirects, whether or not their shops are public."""
        query = """
        SELECT other FROM belongings WHERE type = 'redirects' AND owner = ?1
        UNION SELECT owner FROM belongings WHERE type = 'redirects' AND other = ?1
        """
        return [end for (end,) in self._db.execute(query, (domain,))]

    def accounts(self) -> tuple[ResourceAccountRecord, ...]:
        """The operator's accounts with outside providers, by provider, then account."""
        query = "SELECT record FROM belongings WHERE type = 'resource_accounts' AND presence = 0"
        found = self._db.execute(query)
        accounts = [ResourceAccountRecord.model_validate_json(record) for (record,) in found]
        return tuple(sorted(accounts, key=lambda account: (account.provider, account.account)))

    def program(self, shop_id: str) -> AffiliateProgramRecord | None:
        """A shop's programme; if it has several, that of the first network by name."""
        row = self._db.execute(_OWNED, ("affiliate_programs", shop_id)).fetchone()
        return AffiliateProgramRecord.model_validate_json(row[0]) if row else None


@lru_cache(maxsize=64)
def _shop(text: str) -> ShopRecord:
    """The shop of a related record; cached, as the records of a shop often follow one another."""
    return ShopRecord.model_validate_json(text)
