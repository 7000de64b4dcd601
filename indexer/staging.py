"""Where a build sorts its records out: the newest of each key, and who wins a domain.

A temporary SQLite file, readable by its owner only and gone with the build, so that memory stays the same whatever the
catalogue's size. Of a shop that is not public only its key and version are kept, as it may replace an older record.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self

from index_mappings.rank import rank_key
from indexer.records import ShopRecord
from indexer.visibility import is_public

_SCHEMA: Final = """
CREATE TABLE shops (
    id TEXT PRIMARY KEY, version INTEGER, line INTEGER NOT NULL, rank TEXT, domain TEXT, record TEXT
) WITHOUT ROWID;
CREATE TABLE winners (rank TEXT PRIMARY KEY, id TEXT NOT NULL, line INTEGER NOT NULL, domain TEXT) WITHOUT ROWID;
"""
# Rank order is popularity descending, then id: exactly the order in which a domain is won.
_SETTLE: Final = """
INSERT INTO winners SELECT rank, id, line, domain FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY domain ORDER BY rank) AS place FROM shops WHERE record IS NOT NULL
) WHERE place = 1;
CREATE UNIQUE INDEX winning_domain ON winners (domain);
CREATE UNIQUE INDEX winning_id ON winners (id);
"""
_LOST: Final = """
SELECT shops.line, winners.line FROM shops JOIN winners USING (domain) WHERE shops.id <> winners.id ORDER BY shops.line
"""
_CARRIED: Final = """
SELECT value ->> 'slug' AS slug, value ->> 'name' AS name, COUNT(*) AS shops
FROM winners JOIN shops USING (id), json_each(shops.record, '$.categories')
GROUP BY slug, name ORDER BY slug, shops DESC, name
"""


@dataclass(frozen=True, slots=True)
class CarriedCategory:
    """A category that a winning shop carries.

    Attributes:
        slug: the slug.
        name: the display name that most shops give it; of equally many the smaller.
        count: how many winning shops carry it.
        names: how many display names were given to it.
    """

    slug: str
    name: str
    count: int
    names: int


class KeyTwiceError(Exception):
    """A key came twice and no version says which record is newer."""

    def __init__(self, first_line: int) -> None:
        super().__init__(f"is already the key of line {first_line}, and no version says which of them is newer")


class Staging:
    """The records of one build: put them all, settle once, then read."""

    def __init__(self) -> None:
        self._directory = TemporaryDirectory(prefix="shop-directory-")
        path = Path(self._directory.name) / "staging.sqlite"
        path.touch(mode=0o600)
        # A sink may draw the records from another thread, but never from two at a time.
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        # A build that is killed starts anew: nothing here has to survive it.
        self._db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        self._db.executescript(_SCHEMA)
        self._db.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._db.close()
        self._directory.cleanup()

    def put(self, shop: ShopRecord, line: int) -> bool:
        """Keep a record if it is the newest of its key.

        Returns:
            Whether the key was new; False when one of two records was dropped as the older one.

        Raises:
            KeyTwiceError: the key came before, and the versions do not differ.
        """
        before = self._db.execute("SELECT version, line FROM shops WHERE id = ?", (shop.id,)).fetchone()
        if before is not None:
            version, first_line = before
            if version is None or shop.order is None or version == shop.order:
                if not is_public(shop):
                    # Nobody knows which of the two holds: a build that passes over bad records must not show the shop.
                    self._db.execute(
                        "UPDATE shops SET rank = NULL, domain = NULL, record = NULL WHERE id = ?", (shop.id,)
                    )
                raise KeyTwiceError(first_line)
            if version > shop.order:
                return False
        row: tuple[object, ...] = (shop.id, shop.order, line, None, None, None)
        if is_public(shop):
            rank = rank_key(shop.popularity, shop.id)
            row = (shop.id, shop.order, line, rank, shop.domain, shop.model_dump_json())
        self._db.execute("INSERT OR REPLACE INTO shops VALUES (?, ?, ?, ?, ?, ?)", row)
        return before is None

    def settle(self) -> int:
        """Decide who wins each domain; from then on the public shops can be read.

        Returns:
            How many public shops there are.
        """
        self._db.execute("COMMIT")
        self._db.executescript(_SETTLE)
        (count,) = self._db.execute("SELECT COUNT(*) FROM winners").fetchone()
        return int(count)

    def winners(self) -> Iterator[ShopRecord]:
        """The public shops in the order of their rank (M1)."""
        rows = self._db.execute("SELECT record FROM winners JOIN shops USING (id) ORDER BY winners.rank")
        return (ShopRecord.model_validate_json(record) for (record,) in rows)

    def lost_domains(self) -> Iterator[tuple[int, int]]:
        """For each public shop that lost its domain: its line and the winner's."""
        yield from self._db.execute(_LOST)

    def categories(self) -> Iterator[CarriedCategory]:
        """The categories of the public shops, by slug."""
        for slug, rows in groupby(self._db.execute(_CARRIED), key=itemgetter(0)):
            named = [(name, shops) for _, name, shops in rows]
            yield CarriedCategory(slug, named[0][0], sum(shops for _, shops in named), len(named))

    @property
    def connection(self) -> sqlite3.Connection:
        """The file, for what else is staged beside the shops."""
        return self._db

    def public_ids(self) -> Iterator[str]:
        """The ids of the public shops: all that an index may hold."""
        return (shop_id for (shop_id,) in self._db.execute("SELECT id FROM winners"))
