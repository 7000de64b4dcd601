"""Joins the rows of one record, of which each has another entry of a list: a row for each country or category."""

from collections.abc import Iterable, Sequence
from typing import Final

from index_mappings.hosts import has_dot, reduce_host
from indexer.catalogue.sheets.columns import Columns
from indexer.records.entities import decoded
from indexer.records.faults import RefusedRecordError
from indexer.records.shop import NO_ORDER, Record, ShopRecord, validated

# The lists of a record that its rows have parts of.
_LISTS: Final = {
    "shops": ("categories", "countries", "aliases", "checkout_hosts"),
    "coupons": ("countries", "blocked_countries"),
    "shipping": ("destinations", "excluded"),
}
# The fields that identify a row of a kind, where it has no id.
_IDENTITY: Final = {"shops": ("domain",), "coupons": ("shop_id", "code"), "shipping": ("shop_id",)}


class Repeated:
    """The rows that may be of one record with other ones, by hashes of what identifies them."""

    def __init__(self, columns: Columns) -> None:
        self._kind, positions = columns.kind, columns.positions
        self._id = positions.get("id")
        self._others = [positions[name] for name in _IDENTITY.get(columns.kind, ()) if name in positions]
        self._seen, self._repeated = set[int](), set[int]()

    def add(self, row: Sequence[str]) -> None:
        """Note a row."""
        if self._others:
            found = self._hash(row)
            (self._repeated if found in self._seen else self._seen).add(found)

    def __contains__(self, row: Sequence[str]) -> bool:
        return bool(self._repeated) and self._hash(row) in self._repeated

    def _hash(self, row: Sequence[str]) -> int:
        cells = [decoded(row[at]).strip() for at in (self._id,) if at is not None and at < len(row)]
        cells = list(filter(None, cells)) or [decoded(row[at]).strip() for at in self._others if at < len(row)]
        return hash(tuple((reduce_host(cell) if has_dot(cell) else None) or cell for cell in cells))


def joined(kind: str, first: Record, second: Record) -> Record | None:
    """The record of which two rows have different entries of its lists, all else being equal; None if they are none.

    But for shops, whose lists state known facts, both rows have entries: a row without any does not limit the record.
    """
    lists = [name for name in _LISTS.get(kind, ()) if getattr(first, name) != getattr(second, name)]
    others = type(first).model_fields.keys() - set(lists)
    if first.order != NO_ORDER or not lists or any(getattr(first, name) != getattr(second, name) for name in others):
        return None
    if not isinstance(first, ShopRecord) and not all(getattr(one, name) for name in lists for one in (first, second)):
        return None
    said, more = first.model_dump(mode="json"), second.model_dump(mode="json")
    merged = {name: _union(said[name], more[name]) for name in lists}
    try:
        return validated(type(first), {**said, **merged}, lenient=False)
    except RefusedRecordError:
        return None


def _union(first: Iterable[object], second: Iterable[object]) -> list[object]:
    entries = list(first)
    return [*entries, *(entry for entry in second if entry not in entries)]
