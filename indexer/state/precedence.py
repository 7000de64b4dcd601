"""The precedence among the records of a key: the newest wins (G3).

Versions are compared as `Order` is: a kind of version before its number. The tables of the state hold both in the
columns `kind` and `number`, so SQL compares them in the same way (`newer_sql`).
"""

from enum import IntEnum

from indexer.sources.protocol import NO_ORDER, Order


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


def precedence(order: Order, presence: Presence, text: str | None, *, hides: bool = False) -> tuple[Order, int, str]:
    """The precedence of a record of a key, the greatest of which wins.

    Of different records with the same version, the one that hides more wins, then the one with the greater text, so
    that the result does not depend on the order of arrival.
    """
    if presence is Presence.THERE:
        return order, int(hides), text or ""
    # A key's absence from a catalogue is weaker than a change of the same version: a build that reads the same
    # catalogue and changes again must have the same result.
    return order, -1 if presence is Presence.MISSING else 2, ""


def is_newer(order: Order, kind: int, number: int, first_line: int) -> bool:
    """Whether a catalogue's record is newer than the stored row of its key, which has the other three values.

    Raises DuplicateKeyError if no version orders the two.
    """
    known = Order(kind, number)
    if known == order or NO_ORDER in (known, order):
        raise DuplicateKeyError(first_line)
    return order > known


def newer_sql(row: str, other: str) -> str:
    """The condition, in SQL, that the row of one alias is newer than that of another one."""
    return f"({row}.kind, {row}.number) > ({other}.kind, {other}.number)"
