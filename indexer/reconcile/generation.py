"""Compares a generation with its state, repairs it, and counts the faults (V1, G3).

The two are compared page by page in the order of the ids, in constant memory, each page under the lease: nothing else
can change the two sides, so no delayed change looks like a fault. A difference is a fault only if it is seen twice. A
pending document is none, as the next update writes it. While the state's derived tables are wrong (R1), nothing is
compared, as the index may be right. Documents that are not public are removed first, immediately, and logged as errors.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, cast

from index_mappings.documents import DOCUMENTS, ShopDocument, stored_part
from indexer.jobs.generation_writing import batches
from indexer.jobs.update import update
from indexer.projection import Projector
from indexer.sinks.failures import SinkError, TypeaheadDamagedError
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.state.public_records import COUNTED_CATEGORIES, DOMAIN_WINNERS
from indexer.state.state import REMOVED_SHOPS, State
from shop_directory.typeahead.segment import Shown, shown_part

_SHOPS: Final = "SELECT id FROM winners WHERE id > :after ORDER BY id LIMIT :most"
_CATEGORIES: Final = "SELECT DISTINCT slug FROM category_names WHERE slug > :after ORDER BY slug LIMIT :most"
# CROSS JOIN fixes the order of the tables: otherwise the planner sorts all related records for each page.
_RELATED: Final = """
SELECT key FROM belongings CROSS JOIN winners ON winners.id = owner
WHERE type = :kind AND key > :after ORDER BY key LIMIT :most
"""
PAGE: Final = 1_000
# The kind of a fault in the typeahead's files, in reports.
TYPEAHEAD: Final = "typeahead"
_OWNED: Final = "SELECT key FROM belongings WHERE owner = ? AND type = ?"
_LOG: Final = logging.getLogger(__name__)
# The ids of one kind; those of the others by _RELATED.
_IDS: Final = {"shops": _SHOPS, "facts": _SHOPS, "categories": _CATEGORIES}


def _differing(key: str, derived: str, counted: str) -> str:
    """Selects the keys of the rows of one side that the other lacks."""
    return " UNION ".join(
        f"SELECT {key} FROM (SELECT * FROM {one} EXCEPT SELECT * FROM {other})"  # noqa: S608 - constants of this module
        for one, other in ((counted, derived), (derived, counted))
    )


# Stored, because several comparisons read the winners, and sorting a million shops takes seconds.
_RECOUNTED: Final = {
    "rightful_winners": DOMAIN_WINNERS,
    # Counted from the rightful winners, whatever the table of winners holds.
    "counted_categories": f"WITH winners AS (SELECT * FROM temp.rightful_winners) {COUNTED_CATEGORIES}",  # noqa: S608 - constants
    "differing_shops": _differing("id", "main.winners", "temp.rightful_winners"),
    "differing_categories": _differing("slug", "main.category_names", "temp.counted_categories"),
}
_COUNTS: Final = """
SELECT 'shops', COUNT(*) FROM temp.differing_shops
UNION ALL SELECT 'categories', COUNT(*) FROM temp.differing_categories
"""
# Documents that depend on a wrong owner of a domain in another way are found by the comparison.
_TOUCHED: Final = f"""
INSERT OR IGNORE INTO pending
SELECT column1, id FROM temp.differing_shops, (VALUES ('shops'), ('facts'), ('{REMOVED_SHOPS}'))
"""  # noqa: S608 - a constant


class FaultType(Enum):
    """The classes of faults, the gravest first."""

    NOT_PUBLIC = "not_public"  # in the index, and of a shop that is not public
    WRONG_GENERATION = "wrong_generation"  # an alias or a stamp of another generation, or a wrong count in a stamp
    GHOST = "ghost"  # in the index, and in no record
    MISSING = "missing"  # not in the index, though its record is public
    STALE = "stale"  # in the index, but different from its record, or more than once
    DAMAGED = "damaged"  # a file of the index or of the typeahead is missing, or was changed after it was written
    STATE = "state"  # the state's derived tables do not follow from its records
    LOST_CHANGE = "lost_change"  # the source has a record that the state lacks or has older
    LOST_DELETE = "lost_delete"  # the state has a record that the source no longer has


# The number of faults by class and kind.
Faults = Counter[tuple[FaultType, str]]


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What a comparison found and did.

    The engine `refused` some repairs, now dead letters. `checked` documents were compared, in `seconds` with pauses.
    """

    faults: Faults = field(default_factory=Counter)
    repaired: int = 0
    refused: int = 0
    checked: int = 0
    seconds: float = 0.0

    def __add__(self, other: "FaultReport") -> "FaultReport":
        return FaultReport(
            self.faults + other.faults,
            self.repaired + other.repaired,
            self.refused + other.refused,
            self.checked + other.checked,
            self.seconds + other.seconds,
        )

    @property
    def total(self) -> int:
        """The number of faults."""
        return self.faults.total()

    @property
    def remaining(self) -> int:
        """The number of faults that were not repaired."""
        return self.total - self.repaired

    def ordered(self) -> list[tuple[FaultType, str, int]]:
        """The class, kind and number of the faults, the gravest first."""
        classes = list(FaultType)
        ordered = sorted(self.faults, key=lambda fault: (classes.index(fault[0]), fault[1]))
        return [(*fault, self.faults[fault]) for fault in ordered]

    def as_wire(self) -> dict[str, Any]:
        """The JSON form of the report."""
        faults: dict[str, dict[str, int]] = {}
        for fault, kind, number in self.ordered():
            faults.setdefault(fault.value, {})[kind] = number
        return {
            "faults": faults,
            "found": self.total,
            "repaired": self.repaired,
            "refused": self.refused,
            "checked": self.checked,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class FaultyDocument:
    """One document with a fault; `shop_id` is the shop of a document that is not public, else None."""

    fault: FaultType
    kind: str
    id: str
    shop_id: str | None = None


# The faults of a page, the number of compared documents, and the id after which the next page starts, if there is one.
_Page = tuple[tuple[FaultyDocument, ...], int, str | None]


def _compare_page(state: State, editor: GenerationEditor, kind: str, after: str, most: int) -> _Page:
    """Compare the next documents of a kind, with ids after `after`; neither side may change during the comparison.

    At most `most` are read on either side.
    """
    findings, checked, end = _compare_once(state, editor, kind, after, most)
    if findings:
        again = set(_compare_once(state, editor, kind, after, most)[0])
        findings = tuple(finding for finding in findings if finding in again)
    return findings, checked, end


def _compare_once(state: State, editor: GenerationEditor, kind: str, after: str, most: int) -> _Page:
    db, parameters = state.connection, {"kind": kind, "after": after, "most": most}
    indexed = editor.page(kind, after, most)
    wanted = [found for (found,) in db.execute(_IDS.get(kind, _RELATED), parameters)]
    # A document beyond the end of a full page may be on the next one: both sides stop at the lower end.
    ends = [wanted[-1]] if len(wanted) == most else []
    if len(indexed) == most:
        ends += [stored["id"] for _, stored in reversed(indexed) if "id" in stored][:1]
    end = min(ends, default=None)
    if end is not None:
        wanted = [found for found in wanted if found <= end]
        indexed = [(found, stored) for found, stored in indexed if "id" in stored and stored["id"] <= end]
    shown: Mapping[str, Shown] | None = None
    if kind == "shops":
        with suppress(TypeaheadDamagedError):  # reported as a separate fault
            shown = editor.typeahead.shown(after, end)
    findings = tuple(
        finding
        for finding in _differences(state, kind, indexed, wanted, shown)
        if not state.pending.has(kind, finding.id)
    )
    return findings, len({document_id for document_id, _ in indexed}.union(wanted)), end


def _differences(
    state: State,
    kind: str,
    indexed: list[tuple[str, dict[str, Any]]],
    wanted: list[str],
    shown: Mapping[str, Shown] | None,
) -> Iterator[FaultyDocument]:
    projector = Projector(state)
    copies = Counter(found for found, _ in indexed)
    stored = dict(indexed)
    for document_id in wanted:
        document = projector.document(kind, document_id)
        if copies[document_id] == 0 or (shown is not None and document_id not in shown):
            yield FaultyDocument(FaultType.MISSING, kind, document_id)
        elif copies[document_id] > 1 or not _same(
            document, stored[document_id], None if shown is None else shown[document_id]
        ):
            yield FaultyDocument(FaultType.STALE, kind, document_id)
    for document_id in (stored.keys() | (shown or {}).keys()) - set(wanted):
        if projector.document(kind, document_id) is not None:
            yield FaultyDocument(FaultType.STALE, kind, document_id)  # it is stored under another id
        else:
            yield _unwanted(state, kind, document_id)


def _same(document: object | None, stored: dict[str, Any], shown: Shown | None) -> bool:
    """Whether the stored fields, and a shop's suggestion, equal the document."""
    if document is None or stored != stored_part(document):
        return False
    return shown is None or shown == shown_part(cast("ShopDocument", document))


def _unwanted(state: State, kind: str, document_id: str) -> FaultyDocument:
    owner: str | None = None
    if kind in {"shops", "facts"}:
        owner = None if state.rows.row("shops", document_id) is None else document_id
    elif kind != "categories":
        row = state.rows.row(kind, document_id)
        owner = None if row is None else row.owner
    return FaultyDocument(FaultType.GHOST if owner is None else FaultType.NOT_PUBLIC, kind, document_id, owner)


# Kinds that can hold hidden documents come before categories, which are only counted.
KINDS: Final = (*(kind for kind in DOCUMENTS if kind != "categories"), "categories")


@dataclass(frozen=True, slots=True)
class GenerationComparison:
    """One generation and its state, which nothing else may change; `check` raises when the lease is lost."""

    state: State
    editor: GenerationEditor
    repair: bool
    check: Callable[[], None]

    def begin(self, *, is_checked: bool = False) -> tuple[FaultReport, bool]:
        """Check all files, the state's derived tables, and the stamp's counts.

        `is_checked` says that files and tables are known to be correct. Returns the findings, and whether documents
        can be compared: with damaged files that proves nothing, and a repair would make their content look correct.
        """
        self.check()
        if not self.editor.stamp.readable:
            raise SinkError("the generation has another schema version: build a new one")
        damaged = found = FaultReport()
        if not is_checked:
            if (lost := self._check_files()).total:
                return lost, False
            damaged, found = self._check_typeahead(), _check_state(self.state)
        if self.repair:
            if found.total:
                with self.state.transaction():
                    self.state.public.settle()
                    self.state.connection.execute(_TOUCHED)
            found = replace(found, repaired=found.total)
            self._update()
        return damaged + found + self._check_counts(), not found.remaining

    def compare(self, kind: str, after: str, most: int = PAGE) -> tuple[FaultReport, str | None]:
        """Compare the next page of a kind, of at most `most` documents; returns also the id where the next one begins.

        That is None after the last page.
        """
        self.check()
        if self.repair:
            self._update()  # pending documents of a failed update, which the comparison skips
        findings, checked, end = _compare_page(self.state, self.editor, kind, after, most)
        found = self._repair_page(findings) if self.repair else _counted(findings)
        return found + FaultReport(checked=checked), end

    def _check_files(self) -> FaultReport:
        """Check the files of the indices; a damaged one can only be replaced with the whole generation."""
        damaged = self.editor.files_damaged()
        for _, name in damaged:
            _LOG.error("the file %s of the live generation is missing or damaged: build again, or roll back", name)
        return FaultReport(Counter((FaultType.DAMAGED, kind) for kind, _ in damaged))

    def _check_typeahead(self) -> FaultReport:
        """Check the typeahead's files; a repair writes all of them again from the stored shops."""
        damaged = self.editor.typeahead.damaged()
        if damaged and self.repair:
            self.check()
            self.editor.typeahead.rebuild()
            stamp = self.editor.stamp
            self.editor.commit(replace(stamp, sequence=stamp.sequence + 1))
        faults = Counter((FaultType.DAMAGED, TYPEAHEAD) for _ in damaged)
        return FaultReport(faults, len(damaged) if self.repair else 0)

    def _check_counts(self) -> FaultReport:
        """Check the stamp's counts; one that is the index's and not the state's is correct after a refused document."""
        stamp = self.editor.stamp
        held = {kind: self.editor.count(kind) for kind in DOCUMENTS}
        wanted = {projected.kind: projected.count for projected in Projector(self.state).all()}
        wrong = [kind for kind in DOCUMENTS if stamp.counts.get(kind) not in {held[kind], wanted[kind]}]
        if self.state.pending.count():
            wrong = []  # the next update counts again
        if wrong and self.repair:
            self.check()
            self.editor.commit(replace(stamp, sequence=stamp.sequence + 1).counted(held))
        faults = Counter((FaultType.WRONG_GENERATION, kind) for kind in wrong)
        return FaultReport(faults, len(wrong) if self.repair else 0)

    def _repair_page(self, findings: Collection[FaultyDocument]) -> FaultReport:
        """Repair the faults of a page, the gravest in a separate micro-batch."""
        urgent = {finding for finding in findings if finding.fault is FaultType.NOT_PUBLIC}
        for shop_id in sorted({str(finding.shop_id) for finding in urgent}):
            urgent.update(self._all_of_hidden(shop_id))
        others = [finding for finding in findings if finding not in urgent]
        return self._repair_findings(urgent) + self._repair_findings(others)

    def _all_of_hidden(self, shop_id: str) -> Iterator[FaultyDocument]:
        """All documents of a shop that is not public, so that none waits for its own page."""
        if self.state.public.shop(shop_id) is not None:
            return
        for kind in ("shops", "facts", "coupons", "offers"):
            owned = self.state.connection.execute(_OWNED, (shop_id, kind))
            ids = (key for (key,) in owned) if kind in {"coupons", "offers"} else (shop_id,)
            for batch in batches(ids, PAGE):
                for found in self.editor.read(kind, batch):
                    yield FaultyDocument(FaultType.NOT_PUBLIC, kind, found, shop_id)

    def _repair_findings(self, findings: Iterable[FaultyDocument]) -> FaultReport:
        found = _counted(findings)
        if not found.total:
            return found
        if hidden := sum(finding.fault is FaultType.NOT_PUBLIC for finding in findings):
            _LOG.error("%d documents of shops that are not public were in the index: they are being removed", hidden)
        with self.state.transaction():
            for finding in findings:
                self.state.pending.add(finding.kind, finding.id)
                if finding.shop_id is not None:
                    self.state.pending.add(REMOVED_SHOPS, finding.shop_id)
        refused = self._update()
        return replace(found, repaired=found.total - refused, refused=refused)

    def _update(self) -> int:
        return update(self.state, self.editor, self.check).refused


def _counted(findings: Iterable[FaultyDocument]) -> FaultReport:
    return FaultReport(Counter((finding.fault, finding.kind) for finding in findings))


def check_aliases(sink: Sink, *, repair: bool, check: Callable[[], None]) -> FaultReport:
    """Check that all aliases and the stamp belong to the live generation; call it under the lease.

    What is wrong is logged, with what to do. Only a stamp is repaired.
    """
    drifted = remaining = sink.alias_drift()
    if drifted and repair:
        check()
        sink.repair_stamp()
        remaining = sink.alias_drift()
    for advice in remaining.values():
        _LOG.error("%s", advice)
    drift = Counter((FaultType.WRONG_GENERATION, kind) for kind in drifted)
    return FaultReport(drift, len(drifted) - len(remaining))


def _check_state(state: State) -> FaultReport:
    """Compare the derived tables with a recount: shops whose domain or rank is wrong or missing, counts of categories.

    The recount and the differences stay in temporary tables of this connection.
    """
    db = state.connection
    for table, query in _RECOUNTED.items():
        db.execute(f"DROP TABLE IF EXISTS temp.{table}")
        db.execute(f"CREATE TEMP TABLE {table} AS {query}")
    return FaultReport(Counter({(FaultType.STATE, kind): number for kind, number in db.execute(_COUNTS) if number}))


def derived_tables_match(state: State) -> bool:
    """Whether the derived tables equal a recount, in one snapshot of the state, which other connections may change."""
    state.connection.execute("BEGIN")
    try:
        return not _check_state(state).total
    finally:
        state.connection.execute("ROLLBACK")
