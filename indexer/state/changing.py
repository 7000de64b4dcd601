"""Applies changes to a settled state: the newest record of a key wins, in whatever order changes arrive (G3).

All documents that may change are added to the pending ones in the same transaction: of the shop and its related
records, of the shop that gains or loses its domain, of the other ends of redirects, of the categories.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from indexer.records.hiding import Hiding
from indexer.sources.protocol import Change
from indexer.state.marks import marks_size, read_marks
from indexer.state.rows import SHOPS, Origin, Presence, Row
from indexer.state.state import MARKS_POSITION, REMOVED_SHOPS, State

# The kinds of documents of which a shop has several.
OWNED_KINDS: Final = ("coupons", "offers")
# The documents of shops that follow from related records.
_SHOWN_IN: Final = {
    "offers": ("shops",),
    "coupons": ("shops",),
    "shipping": ("shops", "facts"),
    "policies": ("facts",),
    "trust": ("facts",),
}


def apply_changes(state: State, changes: Iterable[Change]) -> tuple[int, int]:
    """Apply changes within the caller's transaction.

    Returns how many were newer than the state's records, and how many equal them.
    """
    changing = _Changing(state)
    compared = Counter(changing.apply(change) for change in changes)
    return compared[1], compared[0]


def apply_marks(state: State) -> bool:
    """Take over the marks that `index hide` and `index show` have made since; returns whether there were any."""
    if (state.get(MARKS_POSITION) or "0") == str(marks_size(state.marks)):
        return False
    with state.transaction():
        marked, size = read_marks(state.marks)
        changing = _Changing(state)
        known = {key for (key,) in state.connection.execute("SELECT key FROM marks")}
        for key in sorted(known ^ marked):
            changing.mark(key, hidden=key in marked)
        state.set(MARKS_POSITION, str(size))
    return True


def apply_hiding(state: State, hiding: Hiding, origin: Origin) -> int:
    """Apply a bad record's hiding, within the caller's transaction; returns how many shops were shown before."""
    changing, shown = _Changing(state), 0
    for row in state.rows.hidden_by(hiding, origin):
        known = state.rows.row(SHOPS, row.key)
        # For a shop that is not known, a change without an order is ignored.
        if known is not None or hiding.order is not None:
            shown += known is not None and known.shown
            changing.replace(row, known)
    return shown


def write_row(state: State, row: Row) -> None:
    """Replace the row of a key, whatever the versions are, within the caller's transaction.

    It may be of another state, with other marks.
    """
    if row.type == SHOPS and row.shop is not None:
        row = Row.of(SHOPS, row.shop, row.order, row.origin, row.line)
    _Changing(state).replace(row, state.rows.row(row.type, row.key))


class _Changing:
    def __init__(self, state: State) -> None:
        self._state = state
        self._db = state.connection
        self._rows = state.rows
        self._public = state.public
        self._pending = state.pending

    def apply(self, change: Change) -> int:
        """Apply a change that is newer than the record of its key; returns 1 if it is, 0 if it equals it, else -1."""
        if change.record is None:
            row = Row(change.type, change.key, change.order, Origin.CHANGE, 0, Presence.DELETED)
        else:
            row = Row.of(change.type, change.record, change.order, Origin.CHANGE, 0)
        known = self._rows.row(change.type, change.key)
        if known is not None and row.precedence <= known.precedence:
            return 0 if row.precedence == known.precedence else -1
        self.replace(row, known)
        return 1

    def mark(self, key: str, *, hidden: bool) -> None:
        statement = "INSERT OR IGNORE INTO marks VALUES (?)" if hidden else "DELETE FROM marks WHERE key = ?"
        self._db.execute(statement, (key,))
        row = self._rows.row(SHOPS, key)
        if row is not None and row.shop is not None:
            self.replace(Row.of(SHOPS, row.shop, row.order, row.origin, row.line), row)

    def replace(self, row: Row, known: Row | None) -> None:
        if row.type == SHOPS:
            row = self._gated(row)
            self._release_domain(row.key)
        self._rows.write(row)
        rows = (row,) if known is None else (row, known)
        owners = {found.owner for found in rows if found.owner is not None}
        match row.type:
            case "shops":
                for domain in owners:
                    self._assign_domain(domain)
            case "redirects":
                self._touch_domains(owners | {found.other for found in rows if found.other is not None})
            case "categories":
                # If no public shop carries a category, not even its removal may reach an engine (V1).
                if self._public.category(row.key) is not None:
                    self._pending.add("categories", row.key)
            case "affiliate_programs":
                for owner in owners:
                    self._pending.add_owned("offers", owner)
            case "coupons" | "offers" | "resource_accounts":
                self._pending.add(row.type, row.key)
        # Nor may the removal of a shop that is not public.
        public = [owner for owner in owners if row.type in _SHOWN_IN and self._public.shop(owner) is not None]
        for kind in _SHOWN_IN.get(row.type, ()):
            for owner in public:
                self._pending.add(kind, owner)

    def _gated(self, shop: Row) -> Row:
        """A shop as its mark has it, if there is one (V4)."""
        return replace(shop, owner=None, rank=None) if self._state.is_marked(shop.key) else shop

    def _assign_domain(self, domain: str) -> None:
        """Give a domain to the best shop that claims it."""
        statement = "SELECT id, rank, line FROM shops WHERE domain = ? AND shown ORDER BY rank LIMIT 1"
        best = self._db.execute(statement, (domain,)).fetchone()
        holder = self._public.domain_holder(domain)
        if holder is not None and (best is None or best[0] != holder):
            self._release_domain(holder)
        if best is None or best[0] == holder:
            return
        shop_id, rank, line = best
        self._db.execute("INSERT INTO winners VALUES (?, ?, ?, ?)", (shop_id, rank, domain, line))
        self._count_categories(shop_id, 1)
        self._touch_shop(shop_id)
        self._touch_domains({domain, *self._public.linked_domains(domain)})

    def _release_domain(self, shop_id: str) -> None:
        row = self._db.execute("SELECT domain FROM winners WHERE id = ?", (shop_id,)).fetchone()
        if row is None:
            return
        self._count_categories(shop_id, -1)
        self._db.execute("DELETE FROM winners WHERE id = ?", (shop_id,))
        self._touch_shop(shop_id)
        self._pending.add(REMOVED_SHOPS, shop_id)
        self._touch_domains({row[0], *self._public.linked_domains(row[0])})

    def _touch_shop(self, shop_id: str) -> None:
        self._pending.add("shops", shop_id)
        self._pending.add("facts", shop_id)
        for kind in OWNED_KINDS:
            self._pending.add_owned(kind, shop_id)

    def _touch_domains(self, domains: Iterable[str]) -> None:
        for domain in domains:
            if (holder := self._public.domain_holder(domain)) is not None:
                self._pending.add("shops", holder)

    def _count_categories(self, shop_id: str, by: int) -> None:
        row = self._rows.row(SHOPS, shop_id)
        shop = None if row is None else row.shop
        for category in () if shop is None else shop.categories:
            self._db.execute(
                "INSERT INTO category_names VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET shops = shops + ?3",
                (category.slug, category.name, by),
            )
            self._pending.add("categories", category.slug)
        self._db.execute("DELETE FROM category_names WHERE shops <= 0")
