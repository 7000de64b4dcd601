"""Compares a generation with its state, repairs it, and counts the faults (V1, G3).

Documents that are not public are removed first, immediately, and logged as errors. Each page is compared under the
lease: nothing else can change the two sides, so no delayed change looks like a fault.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.documents import DOCUMENTS
from indexer.jobs.update import update
from indexer.jobs.verification import batches
from indexer.projection.generation import Projector
from indexer.reconcile.findings import Fault, FaultReport
from indexer.reconcile.pages import Finding, compare_page
from indexer.reconcile.state import check_state, clear_doubtful, rebuild_derived_tables
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.state.pending import REMOVED_SHOPS
from indexer.state.state import State

PAGE: Final = 1_000
# The kind of a fault in the typeahead's files, in reports.
TYPEAHEAD: Final = "typeahead"
_OWNED: Final = "SELECT key FROM belongings WHERE owner = ? AND type = ?"
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a comparison: the index of a kind in KINDS, or -1 at the start, and the last id compared."""

    kind: int = -1
    after: str = ""


# Kinds that can hold hidden documents come before categories, which are only counted.
KINDS: Final = (*(kind for kind in DOCUMENTS if kind != "categories"), "categories")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One generation and its state; nothing else may change them during a step.

    Attributes:
        state, editor: of the same generation.
        repair: whether faults are repaired.
        check: raises when the lease is lost.
        clock: for the stamp.
        is_checked: whether the state's derived tables and the files of the typeahead were checked already, and are
            correct.
    """

    state: State
    editor: GenerationEditor
    repair: bool
    check: Callable[[], None]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    is_checked: bool = False

    def step(self, cursor: Cursor, most: int = PAGE) -> tuple[FaultReport, Cursor | None]:
        """Compare the next page, of at most `most` documents; the next position is None at the end.

        Raises:
            SinkError: the engine failed, or the lease is lost; documents to be repaired are pending.
        """
        self.check()
        if cursor.kind < 0:
            damaged = self._check_files()
            # A comparison with damaged files proves nothing, and a repair would make their content look correct.
            return (damaged, None) if damaged.total else (self._compare_derived(), Cursor(0))
        if self.repair:
            self._update()  # pending documents of a failed update, which the comparison skips
        page = compare_page(self.state, self.editor, KINDS[cursor.kind], cursor.after, most)
        found = self._repair_page(page.findings) if self.repair else _counted(page.findings)
        found += FaultReport(checked=page.checked)
        if page.after is not None:
            return found, Cursor(cursor.kind, page.after)
        return found, Cursor(cursor.kind + 1) if cursor.kind + 1 < len(KINDS) else None

    def _compare_derived(self) -> FaultReport:
        """Check the typeahead's files, the state's derived tables, and the stamp's counts."""
        damaged = found = FaultReport()
        if self.is_checked:
            clear_doubtful(self.state)
        else:
            damaged, found = self._check_typeahead(), check_state(self.state)
        if self.repair:
            if found.total:
                rebuild_derived_tables(self.state)
            found = replace(found, repaired=found.total)
            self._update()
        return damaged + found + self._check_counts()

    def _check_files(self) -> FaultReport:
        """Check the files of the indices; a damaged one can only be replaced with the whole generation."""
        if not self.editor.stamp.readable:
            raise SinkError("the generation has another schema version: build a new one")
        damaged = self.editor.files_damaged()
        for _, name in damaged:
            _LOG.error("the file %s of the live generation is missing or damaged: build again, or roll back", name)
        return FaultReport.of((Fault.DAMAGED, kind) for kind, _ in damaged)

    def _check_typeahead(self) -> FaultReport:
        """Check the typeahead's files; a repair writes all of them again from the stored shops."""
        damaged = self.editor.typeahead_damaged()
        if damaged and self.repair:
            self.check()
            self.editor.rebuild_typeahead()
            stamp = self.editor.stamp
            self.editor.commit(replace(stamp, sequence=stamp.sequence + 1))
        faults = ((Fault.DAMAGED, TYPEAHEAD) for _ in damaged)
        return FaultReport.of(faults, repaired=len(damaged) if self.repair else 0)

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
        faults = ((Fault.WRONG_GENERATION, kind) for kind in wrong)
        return FaultReport.of(faults, repaired=len(wrong) if self.repair else 0)

    def _repair_page(self, findings: Iterable[Finding]) -> FaultReport:
        """Repair the faults of a page, the gravest in a micro-batch of their own."""
        listed = tuple(findings)
        urgent = {finding for finding in listed if finding.fault is Fault.NOT_PUBLIC}
        for shop_id in sorted({str(finding.shop_id) for finding in urgent}):
            urgent.update(self._all_of_hidden(shop_id))
        return self._repair_findings(urgent) + self._repair_findings([found for found in listed if found not in urgent])

    def _all_of_hidden(self, shop_id: str) -> Iterator[Finding]:
        """All documents of a shop that is not public, so that none waits for its own page."""
        if self.state.shops.public(shop_id) is not None:
            return
        for kind in ("shops", "facts", "coupons", "offers"):
            owned = self.state.connection.execute(_OWNED, (shop_id, kind))
            ids = (key for (key,) in owned) if kind in {"coupons", "offers"} else (shop_id,)
            for batch in batches(ids, PAGE):
                for found in self.editor.read(kind, batch):
                    yield Finding(Fault.NOT_PUBLIC, kind, found, shop_id)

    def _repair_findings(self, findings: Iterable[Finding]) -> FaultReport:
        found = _counted(findings)
        if not found.total:
            return found
        if hidden := found.number(Fault.NOT_PUBLIC):
            _LOG.error("%d documents of shops that are not public were in the index: they are being removed", hidden)
        with self.state.transaction():
            for finding in findings:
                self.state.pending.add(finding.kind, finding.id)
                if finding.shop_id is not None:
                    self.state.pending.add(REMOVED_SHOPS, finding.shop_id)
        refused = self._update()
        return replace(found, repaired=found.total - refused, refused=refused)

    def _update(self) -> int:
        return update(self.state, self.editor, self.check, self.clock).refused


def _counted(findings: Iterable[Finding]) -> FaultReport:
    return FaultReport.of((finding.fault, finding.kind) for finding in findings)


def check_aliases(sink: Sink, *, repair: bool, check: Callable[[], None]) -> FaultReport:
    """Check, and repair, that all aliases and the stamp belong to the live generation; call it under the lease.

    Raises:
        SinkError: it is not known which generation is live, or the engine failed.
    """
    drifted = sink.alias_drift()
    remaining = drifted
    if drifted and repair:
        check()
        sink.repair_aliases()
        remaining = sink.alias_drift()
    return FaultReport.of(((Fault.WRONG_GENERATION, kind) for kind in drifted), repaired=len(drifted) - len(remaining))
