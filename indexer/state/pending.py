"""The pending documents: those to be written or removed in the engine because their records changed.

They are added in the transaction of the change, and cleared after the engine's refresh (G3).
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

# Not a kind of document: shops that are no longer public, all of whose coupons and offers are removed.
REMOVED_SHOPS: Final = "unseated"
# Not a kind of document either: the accounts in the operations document, which is written as a whole.
ACCOUNTS: Final = "resource_accounts"


class Pending:
    """The pending documents by kind and id."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, kind: str, document_id: str) -> None:
        """Add one document."""
        self._db.execute("INSERT OR IGNORE INTO pending VALUES (?, ?)", (kind, document_id))

    def add_owned(self, kind: str, shop_id: str) -> None:
        """Add all coupons or offers of a shop."""
        statement = "INSERT OR IGNORE INTO pending SELECT type, key FROM belongings WHERE type = ? AND owner = ?"
        self._db.execute(statement, (kind, shop_id))

    def batches(self, kind: str, size: int) -> Iterator[Sequence[str]]:
        """The ids of one kind in order, in lists of at most `size`."""
        after = ""
        query = "SELECT id FROM pending WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        while ids := [found for (found,) in self._db.execute(query, (kind, after, size))]:
            yield ids
            after = ids[-1]

    def count(self) -> int:
        """The number of pending documents."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM pending").fetchone()
        return int(count)

    def has(self, kind: str) -> bool:
        """Whether a document of this kind is pending."""
        return self._db.execute("SELECT 1 FROM pending WHERE kind = ? LIMIT 1", (kind,)).fetchone() is not None

    def clear(self, kind: str | None = None) -> None:
        """Clear the documents of a kind, or all of them."""
        self._db.execute("DELETE FROM pending WHERE ?1 IS NULL OR kind = ?1", (kind,))
