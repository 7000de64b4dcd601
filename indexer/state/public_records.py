"""The public records of a state: shops that own their domain, their related records, and the carried categories.

Only a shop with public visibility claims its domain; among several the best rank wins it (V1, R1). The winners are
public. The related records of a shop that is not public stay stored, so that they come back with the shop (G3).
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeVar

from index_mappings.category_forms import Named
from indexer.records.related import (
    RELATED_RECORDS,
    AffiliateProgramRecord,
    CategoryNamesRecord,
    CouponRecord,
    OfferRecord,
    PolicyRecord,
    RedirectRecord,
    ResourceAccountRecord,
    ShippingRecord,
    TrustRecord,
)
from indexer.records.shop import Record, ShopRecord
from indexer.state.rows import attached

OwnedT = TypeVar("OwnedT", bound=Record)

# Rank order is popularity descending, then id, which also decides between claims on a domain.
# The rows are read in the order of the file and sorted: with an index they would be read in a random order. They are
# written in the order of their table, and its indexes are created afterwards: in a random order, ten million rows would
# read and write most pages of the file again for each row.
DOMAIN_WINNERS: Final = """
SELECT id, rank, domain, line FROM (
    SELECT id, rank, domain, line, ROW_NUMBER() OVER (PARTITION BY domain ORDER BY rank) AS position
    FROM shops NOT INDEXED WHERE shown
) WHERE position = 1 ORDER BY id
"""
_WINNERS_INDEXES: Final = {"winning_rank": "rank", "winning_domain": "domain"}
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
# The types of records that a shop's own document shows, or is found by.
SHOWN_IN_SHOPS: Final = ("offers", "shipping", "coupons", "redirects")
# As many columns follow the record, in the same order.
_WITH_RELATED: Final = """
SELECT record,
    EXISTS (SELECT 1 FROM belongings WHERE owner = winners.id AND type = 'offers'),
    EXISTS (SELECT 1 FROM belongings WHERE owner = winners.id AND type = 'shipping'),
    EXISTS (SELECT 1 FROM belongings WHERE owner = winners.id AND type = 'coupons'),
    EXISTS (SELECT 1 FROM belongings WHERE owner = winners.domain AND type = 'redirects')
        OR EXISTS (SELECT 1 FROM belongings WHERE other = winners.domain AND type = 'redirects')
FROM winners JOIN shops USING (id) ORDER BY winners.rank
"""
# Multiplied by one prime, modulo another, lines are spread also where each tenth one is of one kind.
_SPREAD: Final = 1_000_003
_SAMPLED: Final = """
SELECT record FROM winners JOIN shops USING (id) WHERE winners.line * 611953 % 1000003 < ?
"""
_COUNT_LOST: Final = "SELECT (SELECT COUNT(*) FROM shops WHERE shown) - (SELECT COUNT(*) FROM winners)"
_COUNT_HIDDEN: Final = "SELECT COUNT(*) FROM shops WHERE presence = 0 AND NOT shown"
_BY_LINE: Final = """
SELECT shops.line, record FROM winners JOIN shops USING (id) WHERE length(record) > ? ORDER BY shops.line
"""
# By type; of the types whose owner is a shop, those of public shops.
_COUNT_RECORDS: Final = """
SELECT type, COUNT(*) FROM {schema}.belongings AS one WHERE presence = 0 AND (
    type IN ('categories', 'redirects', 'resource_accounts')
    OR owner IN (SELECT now.id FROM main.winners AS now JOIN former_state.winners AS was USING (id)))
GROUP BY type ORDER BY MIN(rowid)
"""
_OWNED: Final = "SELECT record FROM belongings WHERE type = ? AND owner = ? ORDER BY rank, key LIMIT ?"
_PUBLIC: Final = "FROM belongings JOIN winners ON winners.id = owner WHERE type = ?"
_OF_PUBLIC: Final = "FROM belongings JOIN winners ON winners.id = owner JOIN shops ON shops.id = owner WHERE type = ?"
_REDIRECTS: Final = """
SELECT record FROM belongings JOIN winners ON winners.domain = other WHERE type = 'redirects' AND owner = ?1
UNION ALL
SELECT record FROM belongings JOIN winners ON winners.domain = owner WHERE type = 'redirects' AND other = ?1 ORDER BY 1
"""
_COUNT_REDIRECTS: Final = """
SELECT COUNT(*) FROM belongings JOIN winners AS one ON one.domain = owner JOIN winners AS two ON two.domain = other
WHERE type = 'redirects' AND owner <> other
"""
_COUNT_CARRIED: Final = """
SELECT COUNT(*) FROM belongings WHERE type = 'categories' AND presence = 0 AND key IN (SELECT slug FROM category_names)
"""
# The public shops in the order of their rank, one row for each statement and at least one row for each shop. Left to
# itself, SQLite reads all records of these types for each shop, because the index of the keys has their order.
_FACTS: Final = """
SELECT winners.id, winners.domain, type, record FROM winners
LEFT JOIN belongings INDEXED BY owned ON owner = winners.id AND type IN ('shipping', 'policies', 'trust')
"""
_BY_SHOP: Final = "ORDER BY winners.rank, type, key"


@dataclass(frozen=True, slots=True)
class CarriedCategory:
    """A category that `count` public shops carry, with the number of display names that they use.

    `name` is the catalogue's own, and `names` is 1 then; else the most frequent one of the shops, of equals the
    smaller. `other_names` and `synonyms` are those in the catalogue, each with its language.
    """

    slug: str
    name: str
    count: int
    names: int
    other_names: tuple[Named, ...] = ()
    synonyms: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class ShopFacts:
    """A public shop's statements and measurements."""

    shop_id: str
    domain: str
    shipping: ShippingRecord | None = None
    policies: tuple[PolicyRecord, ...] = ()
    trust: tuple[TrustRecord, ...] = ()


class PublicRecords:
    """Settles the records of a catalogue once, then reads those that are public."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def settle(self, tick: Callable[[], None] = lambda: None) -> None:
        """Compute the owners of all domains and the categories again; `tick` is called after each statement."""
        for statement in (
            *(f"DROP INDEX IF EXISTS {name}" for name in _WINNERS_INDEXES),
            "DELETE FROM winners",
            "DELETE FROM category_names",
            f"INSERT INTO winners {DOMAIN_WINNERS}",
            *(f"CREATE UNIQUE INDEX {name} ON winners ({column})" for name, column in _WINNERS_INDEXES.items()),
            f"INSERT INTO category_names {COUNTED_CATEGORIES}",
        ):
            self._db.execute(statement)
            tick()

    def shop(self, shop_id: str) -> ShopRecord | None:
        """A shop's record, if it is public."""
        row = self._db.execute("SELECT record FROM winners JOIN shops USING (id) WHERE id = ?", (shop_id,)).fetchone()
        return None if row is None else ShopRecord.model_validate_json(row[0])

    def shops(self) -> Iterator[tuple[ShopRecord, tuple[str, ...]]]:
        """The public shops in the order of their rank (M1), each with those of SHOWN_IN_SHOPS that it has."""
        for record, *has in self._db.execute(_WITH_RELATED):
            yield ShopRecord.model_validate_json(record), tuple(compress(SHOWN_IN_SHOPS, has))

    def sampled_shops(self, size: int) -> Iterator[ShopRecord]:
        """About this number of public shops, the same at each call; all of them if there are no more."""
        below = -(-_SPREAD * size // max(1, self.count("shops")))
        for (record,) in self._db.execute(_SAMPLED, (below,)):
            yield ShopRecord.model_validate_json(record)

    def shops_by_line(self, longer_than: int = 0) -> Iterator[tuple[int, ShopRecord]]:
        """The public shops whose records have more characters than this, each after its line, by line."""
        for line, record in self._db.execute(_BY_LINE, (longer_than,)):
            yield line, ShopRecord.model_validate_json(record)

    def domain_holder(self, domain: str) -> str | None:
        """The id of the public shop that has a domain."""
        row = self._db.execute("SELECT id FROM winners WHERE domain = ?", (domain,)).fetchone()
        return None if row is None else str(row[0])

    def lost_records(self, former: Path) -> dict[str, tuple[int, int]]:
        """How many records a former state has of each type that has fewer now, and how many there are now.

        Those of shops that are not public any more do not count. The former state is only read.
        """
        with attached(self._db, former, "former_state"):
            before, now = (
                dict(self._db.execute(_COUNT_RECORDS.format(schema=schema)).fetchall())
                for schema in ("former_state", "main")
            )
        return {kind: (count, now.get(kind, 0)) for kind, count in before.items() if now.get(kind, 0) < count}

    def count_hidden(self) -> int:
        """The number of shops whose newest record is not public; tombstones do not count."""
        return self._number(_COUNT_HIDDEN)

    def shop_ids(self) -> Iterator[str]:
        """The ids of the public shops in order: an index may hold no others."""
        return (shop_id for (shop_id,) in self._db.execute("SELECT id FROM winners ORDER BY id"))

    def lost_domains(self, limit: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """Shops with public visibility that did not win their domain.

        Returns the lines of the first ones with the lines of the winners, and the number of all.
        """
        return tuple(self._db.execute(_LOST, (limit,))), self._number(_COUNT_LOST)

    def categories(self) -> Iterator[CarriedCategory]:
        """The categories of the public shops, by slug."""
        for slug, rows in groupby(self._db.execute(f"{_CARRIED} {_IN_ORDER}"), key=itemgetter(0)):
            yield _carried(slug, list(rows))

    def category(self, slug: str) -> CarriedCategory | None:
        """One category; None when no public shop carries it."""
        named = self._db.execute(f"{_CARRIED} WHERE slug = ? {_IN_ORDER}", (slug,)).fetchall()
        return _carried(slug, named) if named else None

    def count(self, kind: str) -> int:
        """The number of public shops, or of the records of a kind that belong to them."""
        if kind == "shops":
            return self._number("SELECT COUNT(*) FROM winners")
        return self._number(f"SELECT COUNT(*) {_PUBLIC}", kind)

    def _number(self, query: str, *parameters: str) -> int:
        return int(self._db.execute(query, parameters).fetchone()[0])

    def left_out(self, kind: str) -> int:
        """The number of records of a kind of no public shop; redirects have to lead from one to another one."""
        if kind not in (*RELATED_RECORDS, "redirects", "categories"):
            return 0
        present = self._number("SELECT COUNT(*) FROM belongings WHERE type = ? AND presence = 0", kind)
        if kind == "redirects":
            return present - self._number(_COUNT_REDIRECTS)
        return present - (self._number(_COUNT_CARRIED) if kind == "categories" else self.count(kind))

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
        """All offers of public shops with their shops and the shops' programmes, in the order of their rank (M11)."""
        query = f"SELECT belongings.record, shops.record {_OF_PUBLIC} ORDER BY belongings.rank"
        for record, shop in self._db.execute(query, ("offers",)):
            offer = OfferRecord.model_validate_json(record)
            yield offer, _shop(shop), self.program(offer.shop_id)

    def all_facts(self) -> Iterator[ShopFacts]:
        """What is known of each public shop, in the order of their rank."""
        return _facts(self._db.execute(f"{_FACTS} {_BY_SHOP}"))

    def facts(self, shop_id: str) -> ShopFacts | None:
        """What is known of a public shop."""
        return next(_facts(self._db.execute(f"{_FACTS} WHERE winners.id = ? {_BY_SHOP}", (shop_id,))), None)

    def newest_offers(self, shop_id: str, limit: int) -> tuple[tuple[OfferRecord, ...], int]:
        """A shop's newest offers, and the number of all its offers."""
        offers = self._owned(OfferRecord, "offers", shop_id, limit)
        query = "SELECT COUNT(*) FROM belongings WHERE type = 'offers' AND owner = ?"
        return offers, self._number(query, shop_id) if len(offers) == limit else len(offers)

    def coupons_of(self, shop_id: str) -> tuple[CouponRecord, ...]:
        """A shop's coupons."""
        return self._owned(CouponRecord, "coupons", shop_id)

    def shipping(self, shop_id: str) -> ShippingRecord | None:
        """A shop's shipping statement."""
        return next(iter(self._owned(ShippingRecord, "shipping", shop_id)), None)

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
        return next(iter(self._owned(AffiliateProgramRecord, "affiliate_programs", shop_id, 1)), None)

    def _owned(self, model: type[OwnedT], kind: str, shop_id: str, limit: int = -1) -> tuple[OwnedT, ...]:
        rows = self._db.execute(_OWNED, (kind, shop_id, limit))
        return tuple(model.model_validate_json(record) for (record,) in rows)


def _facts(rows: Iterable[tuple[str, str, str | None, str | None]]) -> Iterator[ShopFacts]:
    """The facts of each shop; its rows follow one another, and have no type if nothing is known of it."""
    for (shop_id, domain), records in groupby(rows, key=itemgetter(0, 1)):
        of: dict[str | None, list[str]] = {}
        for _, _, kind, record in records:
            of.setdefault(kind, []).append(record or "")
        yield ShopFacts(
            shop_id,
            domain,
            next(map(ShippingRecord.model_validate_json, of.get("shipping", ())), None),
            tuple(map(PolicyRecord.model_validate_json, of.get("policies", ()))),
            tuple(map(TrustRecord.model_validate_json, of.get("trust", ()))),
        )


def _carried(slug: str, named: list[tuple[str, str, int, str | None]]) -> CarriedCategory:
    count = sum(shops for _, _, shops, _ in named)
    _, most_frequent, _, text = named[0]
    if text is None:
        return CarriedCategory(slug, most_frequent, count, len(named))
    stated = CategoryNamesRecord.model_validate_json(text)
    name, names = (most_frequent, len(named)) if stated.name is None else (stated.name, 1)
    return CarriedCategory(slug, name, count, names, stated.other_names, stated.stated_synonyms)


@lru_cache(maxsize=1_024)
def _shop(text: str) -> ShopRecord:
    """The shop of a related record; cached, as the records of a shop are often close to one another."""
    return ShopRecord.model_validate_json(text)
