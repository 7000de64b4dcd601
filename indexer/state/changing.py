"""Applies changes to a settled state: the newest record of a key wins, in whatever order changes arrive (G3).

All documents that may change are added to the pending ones in the same transaction: of the shop and its related
records, of the shop that gains or loses its domain, of the other ends of redirects, of the categories.
"""

from collections.abc import Iterable
from typing import Final

from indexer.records.shop import ShopRecord
from indexer.sources.protocol import Change
from indexer.state.precedence import Origin
from indexer.state.related_rows import RelatedRow
from indexer.state.shop_rows import ShopRow
from indexer.state.state import ACCOUNTS, REMOVED_SHOPS, State

_OWNED_KINDS: Final = ("coupons", "offers")


def apply_changes(state: State, changes: Iterable[Change]) -> int:
    """Apply changes within the caller's transaction; returns how many were newer than the state's records."""
    changing = _Changing(state)
    return sum([changing.apply(change) for change in changes])


def write_shop(state: State, row: ShopRow) -> None:
    """Replace a shop's row, whatever the versions are, within the caller's transaction."""
    _Changing(state).replace_shop(row)


def write_related(state: State, row: RelatedRow) -> None:
    """The same for a related record."""
    _Changing(state).replace_related(row)


class _Changing:
    def __init__(self, state: State) -> None:
        self._db = state.connection
        self._shops = state.shops
        self._related_records = state.related_records
        self._pending = state.pending

    def apply(self, change: Change) -> bool:
        if change.type == "shops":
            return self._apply_to_shop(change)
        known = self._related_records.row(change.type, change.key)
        if change.record is None:
            row = RelatedRow.tombstone(change.type, change.key, change.order)
        else:
            row = RelatedRow.of(change.type, change.record, change.order, Origin.CHANGE, 0)
        if known is not None and row.precedence <= known.precedence:
            return False
        self.replace_related(row, known)
        return True

    def _apply_to_shop(self, change: Change) -> bool:
        known = self._shops.row(change.key)
        if isinstance(change.record, ShopRecord):
            row = ShopRow.of(change.record, change.order, Origin.CHANGE, 0)
        else:
            row = ShopRow.tombstone(change.key, change.order)
        if known is not None and row.precedence <= known.precedence:
            return False
        self.replace_shop(row, known)
        return True

    def replace_shop(self, row: ShopRow, known: ShopRow | None = None) -> None:
        known = known or self._shops.row(row.id)
        self._release_domain(row.id)
        self._shops.write(row)
        for domain in {row.domain, None if known is None else known.domain} - {None}:
            self._assign_domain(str(domain))

    def replace_related(self, row: RelatedRow, known: RelatedRow | None = None) -> None:
        known = known or self._related_records.row(row.type, row.key)
        self._related_records.write(row)
        owners = {owner for owner in (row.owner, known.owner if known else None) if owner is not None}
        if row.type == "redirects":
            ends = {end for end in (row.other, known.other if known else None) if end is not None}
            self._touch_domains(owners | ends)
            return
        if row.type == "categories":
            # Of a category that no public shop carries, not even a removal may reach an engine (V1).
            if self._shops.category(row.key) is not None:
                self._pending.add("categories", row.key)
            return
        if row.type in (*_OWNED_KINDS, ACCOUNTS):
            self._pending.add(row.type, row.key)
        for owner in owners:
            self._touch_by_related(row.type, owner)

    def _touch_by_related(self, kind: str, owner: str) -> None:
        match kind:
            case "offers":
                self._pending.add("shops", owner)  # its document has the newest offers (A1)
            case "shipping" | "trust":
                self._pending.add("facts", owner)
            case "affiliate_programs":
                self._pending.add_owned("offers", owner)

    def _assign_domain(self, domain: str) -> None:
        """Give a domain to the best shop that claims it."""
        statement = "SELECT id, rank, line FROM shops WHERE domain = ? AND shown ORDER BY rank LIMIT 1"
        best = self._db.execute(statement, (domain,)).fetchone()
        holder = self._shops.domain_holder(domain)
        if holder is not None and (best is None or best[0] != holder):
            self._release_domain(holder)
        if best is None or best[0] == holder:
            return
        shop_id, rank, line = best
        self._db.execute("INSERT INTO winners VALUES (?, ?, ?, ?)", (shop_id, rank, domain, line))
        self._count_categories(shop_id, 1)
        self._touch_shop(shop_id)
        self._touch_domains({domain, *self._related_records.linked_domains(domain)})

    def _release_domain(self, shop_id: str) -> None:
        """Take a shop's domain, if it has one."""
        row = self._db.execute("SELECT domain FROM winners WHERE id = ?", (shop_id,)).fetchone()
        if row is None:
            return
        self._count_categories(shop_id, -1)
        self._db.execute("DELETE FROM winners WHERE id = ?", (shop_id,))
        self._touch_shop(shop_id)
        self._pending.add(REMOVED_SHOPS, shop_id)
        self._touch_domains({row[0], *self._related_records.linked_domains(row[0])})

    def _touch_shop(self, shop_id: str) -> None:
        self._pending.add("shops", shop_id)
        self._pending.add("facts", shop_id)
        for kind in _OWNED_KINDS:
            self._pending.add_owned(kind, shop_id)

    def _touch_domains(self, domains: Iterable[str]) -> None:
        for domain in domains:
            if (holder := self._shops.domain_holder(domain)) is not None:
                self._pending.add("shops", holder)

    def _count_categories(self, shop_id: str, by: int) -> None:
        row = self._shops.row(shop_id)
        shop = None if row is None else row.record
        for category in () if shop is None else shop.categories:
            self._db.execute(
                "INSERT INTO category_names VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET shops = shops + ?3",
                (category.slug, category.name, by),
            )
            self._pending.add("categories", category.slug)
        self._db.execute("DELETE FROM category_names WHERE shops <= 0")
