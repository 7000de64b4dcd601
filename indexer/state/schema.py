"""The tables of the state, and how one record is compared with another one of its key (G3)."""

from enum import IntEnum
from typing import Final, NamedTuple

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
# Made when a whole catalogue has been put: filling a table is faster without them.
INDEXES: Final = """
CREATE INDEX claims ON shops (domain, rank) WHERE shown;
CREATE UNIQUE INDEX winning_rank ON winners (rank);
CREATE UNIQUE INDEX winning_domain ON winners (domain);
CREATE INDEX owned ON belongings (owner, type, rank);
CREATE INDEX redirected ON belongings (other) WHERE other IS NOT NULL;
"""


class Origin(IntEnum):
    """Where a record came from."""

    CATALOGUE = 0
    CHANGE = 1


class Presence(IntEnum):
    """Whether there is a record."""

    THERE = 0
    DELETED = 1  # a change said so
    MISSING = 2  # a later catalogue did not have it any more


class Standing(NamedTuple):
    """Which of two records of a key stands: the greater one.

    Equal versions should not come with different records; if they do, what hides more stands, then the greater text:
    the same one in whatever order they arrive.

    Attributes:
        order: what the records say of their age.
        hides: -1 a later catalogue did not have it, 0 public, 1 not public, 2 deleted.
        text: the record's text.
    """

    order: Order
    hides: int
    text: str


def order_from(kind: int, number: int) -> Order:
    """The order of a row."""
    return Order(kind, number) if kind else NO_ORDER


class KeyTwiceError(Exception):
    """A key came twice and no version says which record is newer."""

    def __init__(self, first_line: int) -> None:
        super().__init__(f"is already the key of line {first_line}, and no version says which of them is newer")
