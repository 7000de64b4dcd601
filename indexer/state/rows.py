"""The rows of the state: the newest record of each key, whether it is public or not (G3).

A key's newest record wins. Versions are compared as `Order` is: a kind of version before its number. The tables of the
state hold both in the columns `kind` and `number`, so SQL compares them in the same way (`newer_sql`).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final
from urllib.parse import quote

from index_mappings.tiers import rank_key
from indexer.records.hiding import Hiding
from indexer.records.related import CategoryNamesRecord, OfferRecord, RedirectRecord, ResourceAccountRecord
from indexer.records.shop import NO_ORDER, Order, Record, ShopRecord, is_public

SHOPS: Final = "shops"
_INSERT_SHOP: Final = "INTO shops VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_RELATED: Final = "INTO belongings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Whether the record of a row of `shops` is public, whatever marks say; of a tombstone it is not.
PUBLIC: Final = "record ->> '$.visibility' IS 'public'"
# The same columns of both tables, by type and key.
_ROW_OF_SHOP: Final = f"""
SELECT kind, number, origin, line, presence, {PUBLIC}, domain, NULL, rank, record FROM shops WHERE id = ?2
"""  # noqa: S608 - nothing but constants of this module
_ROW_OF_RELATED: Final = """
SELECT kind, number, origin, line, presence, presence = 0, owner, other, rank, record FROM belongings
WHERE type = ?1 AND key = ?2
"""


class Origin(IntEnum):
    """The origin of a record."""

    CATALOGUE = 0
    CHANGE = 1


class Presence(IntEnum):
    """Whether a record exists."""

    THERE = 0
    DELETED = 1  # by a change
    MISSING = 2  # from a later catalogue


class DuplicateKeyError(Exception):
    """A catalogue has two records of a key, and no versions that order them."""

    def __init__(self, first_line: int) -> None:
        super().__init__(f"is already the key of line {first_line}, and no version says which of them is newer")


def database_uri(path: Path, mode: str) -> str:
    """A file's URI for SQLite, with the special characters of its name escaped."""
    return f"file:{quote(str(path))}?mode={mode}"


def read_only(path: Path) -> sqlite3.Connection:
    """Open a state to read it, whatever its version is; no file is changed."""
    return sqlite3.connect(database_uri(path, "ro"), uri=True)


@contextmanager
def attached(db: sqlite3.Connection, path: Path, name: str) -> Iterator[None]:
    """Attach another state to read it; outside of any transaction, in which nothing can be detached."""
    db.execute(f"ATTACH DATABASE ? AS {name}", (database_uri(path, "ro"),))
    try:
        yield
    finally:
        db.execute(f"DETACH DATABASE {name}")


def newer_sql(row: str, other: str) -> str:
    """The condition, in SQL, that the row of one alias is newer than that of another one."""
    return f"({row}.kind, {row}.number) > ({other}.kind, {other}.number)"


@dataclass(frozen=True, slots=True)
class Row:
    """A record in the state; a tombstone has neither owner nor text, which is the record as JSON.

    It is `shown` if it is there, and a shop's visibility is public. `owner` is the id of its shop, the domain that a
    redirect leads from, or that a shown shop claims; `other` the domain that a redirect leads to. `rank` is the sort
    key of a shown shop, and of an offer in its shop. A marked shop has neither, so nothing shows it (V4).
    """

    type: str
    key: str
    order: Order
    origin: Origin
    line: int
    presence: Presence
    shown: bool = False
    owner: str | None = None
    other: str | None = None
    rank: str | None = None
    text: str | None = None

    @classmethod
    def of(cls, kind: str, record: Record, order: Order, origin: Origin, line: int) -> "Row":
        """The row of a record."""
        shown, owner, other, rank = True, None, None, None
        match record:
            case ShopRecord():
                shown = is_public(record)
                if shown:
                    owner, rank = record.domain, rank_key(record.popularity, record.id)
            case RedirectRecord():
                owner, other = record.from_domain, record.to_domain
            case ResourceAccountRecord() | CategoryNamesRecord():
                pass
            case _:
                owner = record.shop_id  # type: ignore[attr-defined]  # of all the others
                rank = record.rank if isinstance(record, OfferRecord) else None
        text = record.model_dump_json()
        return cls(kind, record.key, order, origin, line, Presence.THERE, shown, owner, other, rank, text)

    @property
    def shop(self) -> ShopRecord | None:
        """The record of a row of a shop; None for a tombstone."""
        return None if self.text is None else ShopRecord.model_validate_json(self.text)

    @property
    def precedence(self) -> tuple[Order, int, str]:
        """The precedence of the record among those of its key, the greatest of which wins.

        Of different records with the same version, the one that hides more wins, then the one with the greater text, so
        that the result does not depend on the order of arrival.
        """
        if self.presence is Presence.THERE:
            return self.order, int(not self.shown), self.text or ""
        # A key's absence from a catalogue is weaker than a change of the same version: a build that reads the same
        # catalogue and changes again must have the same result.
        return self.order, -1 if self.presence is Presence.MISSING else 2, ""


class StateRows:
    """Puts, writes and finds rows by type and key."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put(self, kind: str, record: Record, line: int) -> bool:
        """Store a catalogue's record if it is the newest of its key; returns whether the key was new.

        Nothing is settled. Raises DuplicateKeyError if the key is stored already, and the versions do not differ.
        """
        row = Row.of(kind, record, record.order, Origin.CATALOGUE, line)
        if self._insert("INSERT", row, " ON CONFLICT DO NOTHING"):
            return True
        known = self.row(kind, row.key)
        if known is not None and (known.order == row.order or NO_ORDER in (known.order, row.order)):
            if not row.shown:
                # It is unknown which of the two is valid: a build that skips bad records must not show the shop.
                self.write(row)
            raise DuplicateKeyError(known.line)
        if known is None or row.order > known.order:
            self.write(row)
        return False

    def hidden_by(self, hiding: Hiding, origin: Origin) -> Iterator[Row]:
        """The rows to write for the shop that a bad record hides: as if it was deleted then.

        Where it is not known which of two records is newer, the one that is stored counts as not newer.
        """
        keys = hiding.ids or [row.key for row in self.shops_of_domain(hiding.domain or "")]
        for key in keys:
            known = self.row(SHOPS, key)
            order = NO_ORDER if hiding.order is None else hiding.order
            if known is not None and (not hiding.is_certain or NO_ORDER in (order, known.order)):
                order = max(order, known.order)
            row = Row(SHOPS, key, order, origin, hiding.line, Presence.DELETED)
            if known is None or row.order > known.order or (known.shown and row.precedence > known.precedence):
                yield row

    def write(self, row: Row) -> None:
        """Write a row, replacing any other with its key."""
        self._insert("INSERT OR REPLACE", row)

    def row(self, kind: str, key: str) -> Row | None:
        """The row of a record, whether or not its shop is public."""
        found = self._db.execute(_ROW_OF_SHOP if kind == SHOPS else _ROW_OF_RELATED, (kind, key)).fetchone()
        if found is None:
            return None
        order, number, origin, line, presence, shown, *others = found
        return Row(kind, key, Order(order, number), Origin(origin), line, Presence(presence), bool(shown), *others)

    def shops_of_domain(self, domain: str) -> list[Row]:
        """The rows of all shops whose records state this domain, public or not, by id; reads all shops."""
        query = "SELECT id FROM shops WHERE presence = 0 AND record ->> '$.domain' = ? ORDER BY id"
        ids = self._db.execute(query, (domain,)).fetchall()
        return [row for (shop_id,) in ids if (row := self.row(SHOPS, shop_id)) is not None]

    def count_related(self, shop_id: str) -> dict[str, int]:
        """The numbers of a shop's coupons, offers and other related records by type, without its redirects."""
        query = "SELECT type, COUNT(*) FROM belongings WHERE owner = ? AND presence = 0 GROUP BY type"
        return dict(self._db.execute(query, (shop_id,)))

    def _insert(self, insert: str, row: Row, otherwise: str = "") -> int:
        stated = (row.key, *row.order, row.origin, row.line, row.presence)
        values: tuple[object, ...]
        if row.type == SHOPS:
            values = (*stated, row.shown and row.owner is not None, row.rank, row.owner, row.text)
            return self._db.execute(f"{insert} {_INSERT_SHOP}{otherwise}", values).rowcount
        values = (row.type, *stated, row.owner, row.other, row.rank, row.text)
        return self._db.execute(f"{insert} {_INSERT_RELATED}{otherwise}", values).rowcount
