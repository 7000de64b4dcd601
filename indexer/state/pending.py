"""What the engine does not have yet: documents to be written or removed since their records changed.

They are noted in the transaction of the change and crossed out when the engine has shown them (G3).
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

# Not a kind of document: shops that are no longer public, whose coupons and offers go whatever the state knows of them.
REMOVED_SHOPS: Final = "unseated"
# Nor is this: what the operations document says of outside accounts, which is written as a whole.
ACCOUNTS: Final = "resource_accounts"


class Pending:
    """Documents by kind and id."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, kind: str, document_id: str) -> None:
        """Note one document."""
        self._db.execute("INSERT OR IGNORE INTO pending VALUES (?, ?)", (kind, document_id))

    def add_owned(self, kind: str, shop_id: str) -> None:
        """Note all coupons or offers of a shop."""
        asked = "INSERT OR IGNORE INTO pending SELECT type, key FROM belongings WHERE type = ? AND owner = ?"
        self._db.execute(asked, (kind, shop_id))

    def batches(self, kind: str, size: int) -> Iterator[Sequence[str]]:
        """The ids of one kind, in order, some at a time."""
        after = ""
        asked = "SELECT id FROM pending WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        while ids := [found for (found,) in self._db.execute(asked, (kind, after, size))]:
            yield ids
            after = ids[-1]

    def count(self) -> int:
        """How many there are."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM pending").fetchone()
        return int(count)

    def has(self, kind: str) -> bool:
        """Whether any of a kind is there."""
        return self._db.execute("SELECT 1 FROM pending WHERE kind = ? LIMIT 1", (kind,)).fetchone() is not None

    def clear(self, kind: str | None = None) -> None:
        """Cross out those of a kind, or all of them."""
        self._db.execute("DELETE FROM pending WHERE ?1 IS NULL OR kind = ?1", (kind,))
