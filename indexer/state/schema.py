"""The tables of the state, and how the records of a key are compared (G3)."""

from enum import IntEnum
from typing import Final

from indexer.sources.protocol import NO_ORDER, Order

STATE_VERSION: Final = "1"

SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE shops (
    id TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL, number INTEGER NOT NULL, origin INTEGER NOT NULL,
    line INTEGER NOT NULL, presence INTEGER NOT NULL, shown INTEGER NOT NULL, rank TEXT, domain TEXT, record TEXT
);
CREATE TABLE winners (
    id TEXT PRIMARY KEY, rank TEXT NOT NULL, domain TEXT NOT NULL, line INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE category_names (slug TEXT, name TEXT, shops INTEGER NOT NULL, PRIMARY KEY (slug, name)) WITHOUT ROWID;
CREATE TABLE belongings (
    type TEXT NOT NULL, key TEXT NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL, origin INTEGER NOT NULL,
    line INTEGER NOT NULL, presence INTEGER NOT NULL, owner TEXT, other TEXT, rank TEXT, record TEXT, UNIQUE (type, key)
);
CREATE TABLE pending (kind TEXT, id TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID;
"""
# Created after a whole catalogue was stored: filling a table is faster without them.
INDEXES: Final = (
    "CREATE INDEX claims ON shops (domain, rank) WHERE shown",
    "CREATE UNIQUE INDEX winning_rank ON winners (rank)",
    "CREATE UNIQUE INDEX winning_domain ON winners (domain)",
    "CREATE INDEX owned ON belongings (owner, type, rank)",
    "CREATE INDEX redirected ON belongings (other) WHERE other IS NOT NULL",
)


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


def is_newer(order: Order, kind: int, number: int, first_line: int) -> bool:
    """Whether a catalogue's record is newer than the stored row of its key, which has the other three values.

    Raises:
        DuplicateKeyError: no version orders the two.
    """
    known = Order(kind, number)
    if known == order or NO_ORDER in (known, order):
        raise DuplicateKeyError(first_line)
    return order > known
