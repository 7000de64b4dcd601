"""`index verify`: compares the live generation with its state, and the state with its source, during service (V1, G4).

The lease is held for one page at a time, and not during the pauses of the rate, so a follower can work in between. Nor
is it held for the first check of all files and of the state's derived tables, which takes a minute for a million
shops. `index follow` calls the same on a schedule.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread
from typing import Final

from index_mappings.generations import STAMP
from indexer.disk_space import DiskFullError, full_disk_as_error
from indexer.jobs.update import ChangeApplier
from indexer.reconcile.generation import (
    KINDS,
    PAGE,
    FaultReport,
    GenerationComparison,
    check_aliases,
    derived_tables_match,
)
from indexer.reconcile.source import compare_source, read_source
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import Lease, LeaseHeldError, holding
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.protocol import Source, changes_of
from indexer.state.state import State, StateError, States

_WAIT_S: Final = 60.0
_ROUND_INTERVAL_S: Final = 60.0
# After each step of reading files in a round: that must not take a core, or the engine, from changes and requests.
_PAUSE_S: Final = 0.03
# How long the end of following waits for the end of a round, whose thread ends with the process.
_END_S: Final = 5.0
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of a verification.

    `rate` is the largest number of documents a second; None for no limit, which leaves a follower hardly any time.
    `wait` is the seconds to wait each time while another job has the lease.
    """

    repair: bool = False
    rate: float | None = None
    skip_invalid: bool = False
    wait: float = _WAIT_S


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification.

    `generation` is None where it is not known which is live, as the stamp is of another one and was not repaired.
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
    tick: Callable[[FaultReport], None] = lambda _: None,
    timer: Timer | None = None,
) -> Verified:
    """Check aliases and stamp, then compare the source, if there is one, with the state, and the state with the index.

    The source is read whole, and its changes are applied, as following does. `tick` is called with the findings since
    the last call, often an empty report; its errors are raised. Raises StateError if nothing is live or its state is
    lost; CatalogueError if the source can't be read; SinkError if the engine failed, another job had the lease for too
    long, or another generation was published.
    """
    return _Job(sink, states, options or VerifyOptions(), sink.lease(), tick, timer or Timer()).run(source)


@dataclass(frozen=True, slots=True)
class _Job:
    sink: Sink
    states: States
    options: VerifyOptions
    lease: Lease
    tick: Callable[[FaultReport], None]
    timer: Timer

    def run(self, source: Source | None) -> Verified:
        started = self.timer.now()
        with holding(self.lease, "verify", self.options.wait):
            found = check_aliases(self.sink, repair=self.options.repair, check=self.lease.check)
            if found.remaining and STAMP in self.sink.alias_drift():
                return Verified(None, found)
            self.tick(found)
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
        snapshot = read_source(source, state.path, skip_invalid=self.options.skip_invalid, tick=self._tick_nothing)
        with (
            changes_of(source) as changes,
            closing(DeadLetters(self.states.dead_letters)) as letters,
            snapshot as fresh,
            self._editing(generation) as editor,
        ):
            applier = ChangeApplier(state, editor, changes, letters, self.lease.check)
            found = compare_source(fresh, applier, repair=self.options.repair)
        self.tick(replace(found, checked=0))
        return found

    def _with_state(self, generation: str, state: State) -> FaultReport:
        repair, check, rate, started = self.options.repair, self.lease.check, self.options.rate, self.timer.now()
        most = PAGE if rate is None else max(1, min(PAGE, int(rate)))
        is_checked = self._is_checked(generation, state)
        with self._editing(generation) as editor:
            total, is_comparable = GenerationComparison(state, editor, repair, check).begin(is_checked=is_checked)
        self.tick(total)
        for kind in KINDS if is_comparable else ():
            after: str | None = ""
            while after is not None:
                with self._editing(generation) as editor:
                    found, after = GenerationComparison(state, editor, repair, check).compare(kind, after, most)
                total += found
                self.tick(found)
                if rate is not None and (early := started + total.checked / rate - self.timer.now()) > 0:
                    self.timer.sleep(early)
        return total

    def _is_checked(self, generation: str, state: State) -> bool:
        """Whether derived tables and all files are correct, as far as is seen without the lease.

        If not, the comparison checks both itself: files that are no longer used may have been removed since.
        """
        with self._editing(generation) as editor:
            pass  # files may be read through a closed editor
        try:
            return (
                editor.stamp.readable
                and not editor.files_damaged()
                and not editor.typeahead.damaged(self._tick_nothing)
                and derived_tables_match(state)
            )
        except OSError:
            return False

    def _tick_nothing(self) -> None:
        self.tick(FaultReport())

    @contextmanager
    def _editing(self, generation: str) -> Iterator[GenerationEditor]:
        """The editor of the generation, under the lease, while that is still the live one."""
        with holding(self.lease, "verify", self.options.wait):
            if self._live() != generation:
                raise SinkError("another generation was published meanwhile; its build has verified it")
            with closing(self.sink.edit(generation)) as editor:
                yield editor


class _EndedError(SinkError):
    """The rounds are to end."""


class VerificationRounds:
    """Verifies and repairs the live generation round after round, in a thread, while a follower works.

    `found` has the faults of all rounds.
    """

    def __init__(self, sink: Sink, states: States, rate: float, interval: float = _ROUND_INTERVAL_S) -> None:
        """`rate` is documents a second at most, `interval` the least seconds from one round's start to the next's."""
        self._sink, self._states, self._interval = sink, states, interval
        self._options = VerifyOptions(repair=True, rate=rate)
        self._ended = Event()
        self.found = FaultReport()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run rounds during a `with` block."""
        thread = Thread(target=self._run, name="verification", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(_END_S)

    def _run(self) -> None:
        timer = Timer(sleep=self._sleep)
        while not self._ended.is_set():
            started = time.monotonic()
            try:
                with full_disk_as_error():
                    done = verify_live(self._sink, self._states, options=self._options, tick=self._tick, timer=timer)
                if done.found.total:
                    _LOG.warning("reconcile found %d faults and repaired %d", done.found.total, done.found.repaired)
            except _EndedError:
                return
            except LeaseHeldError:
                pass  # a build is running, which verifies its generation
            except (CatalogueError, SinkError, DiskFullError) as error:
                _LOG.warning("a round of reconciling ended early: %s", error)
            except Exception:  # noqa: BLE001 - an unforeseen fault must not end verification while following goes on
                _LOG.exception("a round of reconciling failed, and the next one tries again")
            self._ended.wait(max(0.0, started + self._interval - time.monotonic()))

    def _tick(self, found: FaultReport) -> None:
        self.found += found
        self._sleep(0.0 if found.checked else _PAUSE_S)

    def _sleep(self, seconds: float) -> None:
        if self._ended.wait(seconds):
            raise _EndedError
