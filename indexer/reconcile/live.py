"""`index verify`: compares the live generation with its state, and the state with its source, during service (V1, G4).

The lease is held for one page at a time, and not during the pauses of the rate, so a follower can work in between.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.generations import STAMP
from indexer.jobs.change_applier import ChangeApplier
from indexer.reconcile.findings import FaultReport
from indexer.reconcile.generation import PAGE, Comparison, Cursor, check_aliases
from indexer.reconcile.source import compare_source, read_source
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import Lease, holding
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.protocol import Source, changes_of
from indexer.state.state import State, StateError, States

_WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of a verification.

    Attributes:
        repair: whether faults are repaired.
        rate: the largest number of documents a second; None for no limit, which leaves a follower hardly any time.
        skip_invalid: skip bad records of the source, as its build did.
        wait: seconds to wait each time while another job has the lease.
    """

    repair: bool = False
    rate: float | None = None
    skip_invalid: bool = False
    wait: float = _WAIT_S


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification.

    Attributes:
        generation: the live one; None where it is not known, as the stamp is of another one and was not repaired.
        found: the faults, and how many of them were repaired.
    """

    generation: str | None
    found: FaultReport


@dataclass(frozen=True, slots=True)
class Timer:
    """A monotonic clock in seconds, and how to sleep."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def verify_live(
    sink: Sink,
    states: States,
    source: Source | None = None,
    options: VerifyOptions | None = None,
    *,
    tick: Callable[[int], None] = lambda _: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    timer: Timer | None = None,
) -> Verified:
    """Check aliases and stamp, then compare the source, if there is one, with the state, and the state with the index.

    The source is read whole, and its changes are applied, as following does. `tick` is called with the number of
    documents that were compared since the last call; 0 while the source is read.

    Raises:
        StateError: nothing is live, or its state is lost; a full build makes a new one.
        CatalogueError: the source can't be read.
        SinkError: the engine failed, another job had the lease for too long, or another generation was published.
    """
    return _Job(sink, states, options or VerifyOptions(), sink.lease(), tick, clock, timer or Timer()).run(source)


@dataclass(frozen=True, slots=True)
class _Job:
    sink: Sink
    states: States
    options: VerifyOptions
    lease: Lease
    tick: Callable[[int], None]
    clock: Callable[[], datetime]
    timer: Timer

    def run(self, source: Source | None) -> Verified:
        started = self.timer.now()
        with holding(self.lease, "verify", self.options.wait):
            found = check_aliases(self.sink, repair=self.options.repair, check=self.lease.check)
            if found.remaining and STAMP in self.sink.alias_drift():
                return Verified(None, found)
            generation = self._live()
        with self.states.open(generation) as state:
            if source is not None:
                found += self._with_source(source, generation, state)
            found += self._with_state(generation, state)
        return Verified(generation, replace(found, seconds=self.timer.now() - started))

    def _live(self) -> str:
        live = self.sink.live()
        if live is None:
            raise StateError("no generation is live: build one first, by shop-directory index build")
        return live.generation

    def _with_source(self, source: Source, generation: str, state: State) -> FaultReport:
        snapshot = read_source(source, state.path, skip_invalid=self.options.skip_invalid, tick=lambda: self.tick(0))
        with (
            changes_of(source) as changes,
            closing(DeadLetters(self.states.dead_letters)) as letters,
            snapshot as fresh,
            self._editing(generation) as editor,
        ):
            applier = ChangeApplier(state, editor, changes, letters, self.lease.check, self.clock)
            return compare_source(fresh, applier, repair=self.options.repair)

    def _with_state(self, generation: str, state: State) -> FaultReport:
        rate, started = self.options.rate, self.timer.now()
        most = PAGE if rate is None else max(1, min(PAGE, int(rate)))
        total = FaultReport()
        cursor: Cursor | None = Cursor()
        while cursor is not None:
            with self._editing(generation) as editor:
                comparison = Comparison(state, editor, self.options.repair, self.lease.check, self.clock)
                found, cursor = comparison.step(cursor, most)
            total += found
            self.tick(found.checked)
            if rate is not None and (early := started + total.checked / rate - self.timer.now()) > 0:
                self.timer.sleep(early)
        return total

    @contextmanager
    def _editing(self, generation: str) -> Iterator[GenerationEditor]:
        """The editor of the generation, under the lease, while that is still the live one."""
        with holding(self.lease, "verify", self.options.wait):
            if self._live() != generation:
                raise SinkError("another generation was published meanwhile; its build has verified it")
            with closing(self.sink.edit(generation)) as editor:
                yield editor
