"""Compares a generation with its state, repairs it, and counts what was wrong (V1, G3).

What the public may not see goes first, at once and loudly. It goes page by page under the lease, when nothing else can
change what is compared, so that nothing is invented.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.documents import DOCUMENTS
from indexer.jobs.update import update
from indexer.jobs.verification import batches
from indexer.projection.generation import Projector
from indexer.reconcile.findings import Fault, FaultCount, Found
from indexer.reconcile.pages import Finding, compare_page
from indexer.reconcile.state import StateFaults, check_state, doubt_nothing, settle_state
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.state.pending import REMOVED_SHOPS
from indexer.state.state import State

PAGE: Final = 1_000
# In reports: the kind of a fault of the typeahead's files.
TYPEAHEAD: Final = "typeahead"
_LONGEST_SLEEP_S: Final = 1.0
_OWNED: Final = "SELECT key FROM belongings WHERE owner = ? AND type = ?"
_LOG: Final = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """How far a comparison has come: `kind` of KINDS, after this id; `kind` is -1 at the beginning."""

    kind: int = -1
    after: str = ""


# What may be hidden comes before what is only counted.
KINDS: Final = (*(kind for kind in DOCUMENTS if kind != "categories"), "categories")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One generation and its state; nobody else may change them during a step.

    Attributes:
        state, editor: of the same generation.
        repair: whether faults are put right.
        check: raises when the lease is lost.
        clock: for the stamp.
        sums_hold: whether the state's sums were checked already, and hold.
    """

    state: State
    editor: GenerationEditor
    repair: bool
    check: Callable[[], None]
    clock: Callable[[], datetime] = _now
    sums_hold: bool = False

    def step(self, place: Place, most: int = PAGE) -> tuple[Found, Place | None]:
        """Compare what comes next.

        Args:
            place: where to go on.
            most: how many documents at most.

        Returns:
            What was found, and where to go on; None at the end.

        Raises:
            SinkError: the engine failed, or the lease is lost; what was to be repaired is pending.
        """
        self.check()
        if place.kind < 0:
            damaged = self._check_files()
            # What is read from damaged files proves nothing, and a repair would write it down as right.
            return (damaged, None) if damaged.total else (self._begin(), Place(0))
        if self.repair:
            self._update()  # what a failure has left; otherwise it is passed over
        page = compare_page(self.state, self.editor, KINDS[place.kind], place.after, most)
        found = self._settled(page.findings) if self.repair else _counted(page.findings)
        found += Found(checked=page.checked)
        if page.after is not None:
            return found, Place(place.kind, page.after)
        return found, Place(place.kind + 1) if place.kind + 1 < len(KINDS) else None

    def _begin(self) -> Found:
        """Check what all else follows from: the typeahead's files, the state's sums, and the stamp's."""
        damaged = self._check_typeahead()
        if self.sums_hold:
            faults = StateFaults(0, 0)
            doubt_nothing(self.state)
        else:
            faults = check_state(self.state)
        counts = ((Fault.STATE, "shops", faults.shops), (Fault.STATE, "categories", faults.categories))
        found = Found(tuple(FaultCount(*count) for count in counts if count[2]))
        if self.repair:
            if found.total:
                settle_state(self.state)
            found = replace(found, repaired=found.total)
            self._update()
        return damaged + found + self._check_counts()

    def _check_files(self) -> Found:
        """A damaged file of an index can only be replaced with the whole generation."""
        if not self.editor.stamp.readable:
            raise SinkError("the generation has another schema version: build a new one")
        damaged = self.editor.files_damaged()
        for _, name in damaged:
            _LOG.error("the file %s of the live generation is missing or damaged: build again, or roll back", name)
        return Found.of((Fault.DAMAGED, kind) for kind, _ in damaged)

    def _check_typeahead(self) -> Found:
        """A file that readers can't use is written again, with all others, from the stored shops."""
        damaged = self.editor.typeahead_damaged()
        if damaged and self.repair:
            self.check()
            self.editor.rebuild_typeahead()
            stamp = self.editor.stamp
            self.editor.commit(replace(stamp, sequence=stamp.sequence + 1))
        faults = ((Fault.DAMAGED, TYPEAHEAD) for _ in damaged)
        return Found.of(faults, repaired=len(damaged) if self.repair else 0)

    def _check_counts(self) -> Found:
        """A count is false when it is neither the state's nor, as after a refused document, the index's."""
        stamp = self.editor.stamp
        held = {kind: self.editor.count(kind) for kind in DOCUMENTS}
        wanted = {projected.kind: projected.count for projected in Projector(self.state).all()}
        false = [kind for kind in DOCUMENTS if stamp.counts.get(kind) not in {held[kind], wanted[kind]}]
        if self.state.pending.count():
            false = []  # the next update counts anew
        if false and self.repair:
            self.check()
            self.editor.commit(replace(stamp, sequence=stamp.sequence + 1).counted(held))
        faults = ((Fault.WRONG_GENERATION, kind) for kind in false)
        return Found.of(faults, repaired=len(false) if self.repair else 0)

    def _settled(self, findings: Iterable[Finding]) -> Found:
        """Repair what was found on a page, the gravest in a micro-batch of its own."""
        listed = tuple(findings)
        urgent = {finding for finding in listed if finding.fault is Fault.NOT_PUBLIC}
        for shop_id in sorted({str(finding.shop_id) for finding in urgent}):
            urgent.update(self._rest_of(shop_id))
        return self._repaired(urgent) + self._repaired([found for found in listed if found not in urgent])

    def _rest_of(self, shop_id: str) -> Iterator[Finding]:
        """All documents of a shop that is not public, so that none waits for its own page."""
        if self.state.shops.public(shop_id) is not None:
            return
        for kind in ("shops", "facts", "coupons", "offers"):
            owned = self.state.connection.execute(_OWNED, (shop_id, kind))
            ids = (key for (key,) in owned) if kind in {"coupons", "offers"} else (shop_id,)
            for some in batches(ids, PAGE):
                for found in self.editor.read(kind, some):
                    yield Finding(Fault.NOT_PUBLIC, kind, found, shop_id)

    def _repaired(self, findings: Iterable[Finding]) -> Found:
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


def _counted(findings: Iterable[Finding]) -> Found:
    return Found.of((finding.fault, finding.kind) for finding in findings)


@dataclass(frozen=True, slots=True)
class Time:
    """The passing of time in seconds, and waiting."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def reconcile(
    state: State,
    editor: GenerationEditor,
    *,
    repair: bool,
    rate: float | None = None,
    check: Callable[[], None] = lambda: None,
    tick: Callable[[int], None] = lambda _: None,
    clock: Callable[[], datetime] = _now,
    passing: Time | None = None,
) -> Found:
    """Compare all of a generation with its state, under one lease.

    Args:
        state: nobody else may change it meanwhile.
        editor: of the same generation.
        repair: whether faults are put right.
        rate: documents a second, at most; None for as fast as it goes.
        check: raises when the lease is lost; asked before each page and each write, and once a second in between.
        tick: is told how many documents were compared since the last time.
        clock: for the stamp.
        passing: of time.

    Raises:
        SinkError: the engine failed, or the lease is lost; repeating it is safe.
    """
    passing = passing or Time()
    comparison = Comparison(state, editor, repair, check, clock)
    started, total, place = passing.now(), Found(), Place()
    most = PAGE if rate is None else max(1, min(PAGE, int(rate)))
    going: Place | None = place
    while going is not None:
        found, going = comparison.step(going, most)
        total += found
        tick(found.checked)
        while rate is not None and (early := started + total.checked / rate - passing.now()) > 0:
            passing.sleep(min(early, _LONGEST_SLEEP_S))
            check()
    return replace(total, seconds=passing.now() - started)


def check_place(sink: Sink, *, repair: bool, check: Callable[[], None]) -> Found:
    """Check, and put right, that all aliases and the stamp are the live generation's; under the lease.

    Raises:
        SinkError: which generation is live can't be told, or the engine failed.
    """
    astray = sink.alias_drift()
    left = astray
    if astray and repair:
        check()
        sink.repair_aliases()
        left = sink.alias_drift()
    return Found.of(((Fault.WRONG_GENERATION, kind) for kind in astray), repaired=len(astray) - len(left))
