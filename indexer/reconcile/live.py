"""`index verify`: the live generation against its state, and that against its source, while all else goes on (V1, G4).

The lease is held for a page at a time, so a following job has its turns; what paces it sleeps without the lease.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.generations import STAMP
from indexer.jobs.catching_up import Follower
from indexer.reconcile.findings import Found
from indexer.reconcile.generation import PAGE, Comparison, Place, Time, check_place
from indexer.reconcile.source import compare_source, read_anew
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import holding
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.protocol import Source
from indexer.state.state import State, StateError
from indexer.state.states import States

_WAIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How a verification is done.

    Attributes:
        repair: whether faults are put right.
        rate: documents a second, at most; None for as fast as it goes, which leaves a following job hardly a turn.
        skip_invalid: pass over bad records of the source, as its build did.
        wait: seconds to wait each time while another job has the lease.
    """

    repair: bool = False
    rate: float | None = None
    skip_invalid: bool = False
    wait: float = _WAIT_S


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification came to.

    Attributes:
        generation: the live one; None where nobody could tell, as its stamp is another one's and was left so.
        found: what was wrong, and what of it was put right.
    """

    generation: str | None
    found: Found


def verify_live(
    sink: Sink,
    states: States,
    source: Source | None = None,
    options: VerifyOptions | None = None,
    *,
    tick: Callable[[int], None] = lambda _: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    passing: Time | None = None,
) -> Verified:
    """Compare aliases and stamp, then the source with the state if a source is given, then the state with the index.

    Args:
        sink: where the generation is.
        states: has its state.
        source: is read whole, and the changes that it has are taken, as following does.
        options: how.
        tick: is told how many documents were compared since the last time; 0 while the source is read.
        clock: for stamps.
        passing: of time.

    Raises:
        StateError: nothing is live, or its state is lost; build anew.
        CatalogueError: the source can't be read.
        SinkError: the engine failed, another job had the lease for too long, or another generation was published.
    """
    job = _Job(sink, states, options or VerifyOptions(), tick=tick, clock=clock, passing=passing or Time())
    return job.run(source)


class _Job:
    def __init__(
        self,
        sink: Sink,
        states: States,
        options: VerifyOptions,
        *,
        tick: Callable[[int], None],
        clock: Callable[[], datetime],
        passing: Time,
    ) -> None:
        self._sink, self._states, self._options = sink, states, options
        self._tick, self._clock, self._passing = tick, clock, passing
        self._lease = sink.lease()

    def run(self, source: Source | None) -> Verified:
        started = self._passing.now()
        with holding(self._lease, "verify", self._options.wait):
            found = check_place(self._sink, repair=self._options.repair, check=self._lease.check)
            if found.left and STAMP in self._sink.alias_drift():
                return Verified(None, found)
            generation = self._live()
        with self._states.open(generation) as state:
            if source is not None:
                found += self._with_source(source, generation, state)
            found += self._with_state(generation, state)
        return Verified(generation, replace(found, seconds=self._passing.now() - started))

    def _live(self) -> str:
        live = self._sink.live()
        if live is None:
            raise StateError("nothing is published that could be verified: build first, by shop-directory index build")
        return live.generation

    def _with_source(self, source: Source, generation: str, state: State) -> Found:
        changes, letters = source.changes(), DeadLetters(self._states.dead_letters)
        reading = read_anew(
            source, state.path, skip_invalid=self._options.skip_invalid, tick=lambda: self._tick(0)
        )  # fmt: skip
        try:
            with reading as anew, self._editing(generation) as editor:
                follower = Follower(state, editor, changes, letters, self._lease.check, self._clock)
                return compare_source(anew, follower, repair=self._options.repair)
        finally:
            letters.close()
            if changes is not None:
                changes.close()

    def _with_state(self, generation: str, state: State) -> Found:
        rate, started = self._options.rate, self._passing.now()
        most = PAGE if rate is None else max(1, min(PAGE, int(rate)))
        total, place = Found(), Place()
        going: Place | None = place
        while going is not None:
            with self._editing(generation) as editor:
                comparison = Comparison(state, editor, self._options.repair, self._lease.check, self._clock)
                found, going = comparison.step(going, most)
            total += found
            self._tick(found.checked)
            if rate is not None and (early := started + total.checked / rate - self._passing.now()) > 0:
                self._passing.sleep(early)
        return total

    @contextmanager
    def _editing(self, generation: str) -> Iterator[GenerationEditor]:
        """The generation, under the lease, if it still is the live one."""
        with holding(self._lease, "verify", self._options.wait):
            if self._live() != generation:
                raise SinkError("another generation was published meanwhile; its build has verified it")
            editor = self._sink.edit(generation)
            try:
                yield editor
            finally:
                editor.close()
