"""Applies changes to the live generation in micro-batches: the follow job, and builds while they run (G3).

The follow job has the lease for one micro-batch at a time, so a build never waits long. Failures are retried with
growing pauses. Only a lost state ends the job, as only a full build can replace a state. A running build follows
changes itself: a shop that goes under review must not stay visible until a long build ends (V3).
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from index_mappings.generations import MissingChanges
from indexer.disk_space import DiskFullError, full_disk_as_error
from indexer.jobs.defaults import MICRO_BATCH
from indexer.jobs.follower_status import STATUS_INTERVAL_S, StatusWriter
from indexer.jobs.update import NOTHING, ChangeApplier, ChangeCounts
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, LeaseLostError, holding
from indexer.sinks.protocol import AnnouncingSink, Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State, StateError, States

_INTERVAL_S: Final = 1.0
_ANNOUNCED_STEP_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
# Longer than a verification has the lease for one page.
_WAIT_S: Final = 1.0
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """The options of the follow job.

    `interval` is the seconds between two reads of changes, `status_interval` those between two statuses while no change
    arrives. With `once` the job ends when no more changes are available, and raises failures instead of retrying.
    """

    interval: float = 1.0
    once: bool = False
    micro_batch: int = MICRO_BATCH
    status_interval: float = STATUS_INTERVAL_S


@dataclass(frozen=True, slots=True)
class FollowSummary:
    """What the follow job did.

    `generation` is the last one that was followed, if any. `failures` counts micro-batches that failed and were
    retried, `status_failures` statuses that could not be written. `missing` are changes that could not be read since
    the last build whose catalogue was newer.
    """

    generation: str | None
    changes: ChangeCounts
    failures: int
    status_failures: int
    seconds: float
    missing: MissingChanges | None = None


class Following:
    """Follows one source of changes."""

    def __init__(
        self,
        sink: Sink,
        states: States,
        changes: ChangeSource | None,
        options: FollowOptions,
        *,
        on_batch: Callable[[ChangeCounts], None] = lambda _: None,
    ) -> None:
        """Without `changes` only pending documents are written; `on_batch` gets what each micro-batch changed."""
        self._sink, self._states, self._changes, self._options = sink, states, changes, options
        self._on_batch = on_batch
        self._status = StatusWriter(changes, options.status_interval)
        self._letters = DeadLetters(states.dead_letters)
        self._lease = sink.lease()
        self._state: State | None = None
        self._generation: str | None = None
        self._waiting = False
        self._missing: MissingChanges | None = None

    def run(self, stop: threading.Event) -> FollowSummary:
        """Follow until `stop` is set, the stream of changes ends or, with `once`, no more changes are available.

        Raises StateError if the live generation's state is lost, which a full build replaces; with `once`, any failure.
        """
        started, total, failures, pause = time.monotonic(), NOTHING, 0, self._options.interval
        try:
            while not stop.is_set():
                try:
                    with full_disk_as_error():
                        done = self._micro_batch()
                except StateError:
                    raise
                except (CatalogueError, SinkError, DiskFullError) as error:
                    if self._options.once:
                        raise
                    failures += 1
                    _LOG.warning("following failed and is retried in %.0f s: %s", pause, error)
                    self._wait(stop, pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
                    continue
                pause = self._options.interval
                if done is not None:
                    total += done
                    if done.more:
                        continue
                    if self._options.once or (self._changes is not None and self._changes.ended):
                        break
                self._wait(stop, self._options.interval)
        finally:
            self._close_state()
            self._letters.close()
        return FollowSummary(
            self._generation, total, failures, self._status.status_failures, time.monotonic() - started, self._missing
        )

    def _wait(self, stop: threading.Event, seconds: float) -> None:
        """Wait, and hold the files that replace each other during the wait."""
        end = time.monotonic() + seconds
        while (remaining := end - time.monotonic()) > 0 and not stop.wait(min(remaining, self._options.interval)):
            if self._changes is not None:
                self._changes.hold()

    def _micro_batch(self) -> ChangeCounts | None:
        """Apply one micro-batch; None while another job has the lease, which with `once` is a failure."""
        try:
            # Another job that goes on is waited for by `_wait`, which holds the files of changes.
            with holding(self._lease, "follow", 0 if self._waiting else _WAIT_S):
                self._waiting = False
                return self._step()
        except LeaseHeldError as error:
            if self._options.once:
                raise
            if not self._waiting:
                _LOG.warning("waiting: %s", error)
            self._waiting = True
            return None

    def _step(self) -> ChangeCounts:
        live = self._sink.live()
        if live is None:
            raise StateError("no generation is live: build one first, by shop-directory index build")
        if not live.readable:
            raise StateError(f"the live generation has schema version {live.schema_version}: build again")
        if self._state is None or self._generation != live.generation:
            self._close_state()
            self._state, self._generation = self._states.open(live.generation), live.generation
        state = self._state
        with closing(self._sink.edit(live.generation)) as editor:
            applier = ChangeApplier(state, editor, self._changes, self._letters, self._lease.check)
            done = applier.step(self._options.micro_batch)
            self._missing = state.missing
            self._status.write(state, editor, self._lease.check, busy=done != NOTHING, behind=done.more)
        if done != NOTHING:
            self._on_batch(done)
        return done

    def _close_state(self) -> None:
        if self._state is not None:
            self._state.close()
            self._state = None


class LiveFollower:
    """Applies changes to the live generation from time to time, when its owner calls `tick`.

    It does nothing when the state of the live generation is lost, nor without changes, which `index hide` may make.
    """

    def __init__(
        self,
        sink: Sink,
        states: States,
        letters: DeadLetters,
        check: Callable[[], None],
        changes: ChangeSource | None,
        *,
        held: ChangeSource | None = None,
    ) -> None:
        """`letters` takes changes that can't be applied; `check` raises when the lease is lost.

        `held` are the changes that the owner reads later for its own generation.
        """
        self._sink, self._states, self._letters, self._check, self._changes = sink, states, letters, check, changes
        self._held = held
        self._status = StatusWriter(changes, only_known=True)
        self._state: State | None = None
        self._unusable = False
        self._generation = ""
        self._next = 0.0

    def tick(self) -> None:
        """Apply one micro-batch, if a second has passed since the last one."""
        if time.monotonic() < self._next:
            return
        if self._held is not None:
            self._held.hold()
        if self._state is None and not self._unusable and (self._changes is not None or self._states.marks.exists()):
            self._state = self._opened()
            self._unusable = self._state is None
        try:
            with full_disk_as_error():
                if self._state is not None:
                    self._step(self._state)
        except LeaseLostError:
            raise
        except (CatalogueError, SinkError, DiskFullError) as error:
            # The build goes on: it reads the same changes itself, and the next tick tries again.
            _LOG.warning("the live generation could not follow: %s", type(error).__name__)
        self._next = time.monotonic() + _INTERVAL_S

    def _opened(self) -> State | None:
        """The state of the live generation; None if there is none, or it cannot be used."""
        live = self._sink.live()
        if live is None or not self._states.has(live.generation):
            return None
        self._generation = live.generation
        try:
            return self._states.open(live.generation)
        except (CatalogueError, DiskFullError):
            _LOG.warning("the live generation is not followed during this build: its state cannot be used")
            return None

    def _step(self, state: State) -> None:
        # Opened for each micro-batch: the embedded engine has memory for one writer at a time.
        with closing(self._sink.edit(self._generation)) as editor:
            done = ChangeApplier(state, editor, self._changes, self._letters, self._check).step()
            self._status.write(state, editor, self._check, busy=done != NOTHING, behind=done.more)

    def close(self) -> None:
        """Close the state."""
        if self._state is not None:
            self._state.close()


def announce(sink: Sink, generation: str, check: Callable[[], None], live: LiveFollower) -> None:
    """Announce a sealed generation, and give readers the time to fetch its typeahead before it is published.

    No answer depends on it, so a failure is logged and the publication goes on. While waiting, the live generation is
    followed, and `check` raises when the lease is lost.
    """
    if not isinstance(sink, AnnouncingSink):
        return
    try:
        seconds = sink.announce(generation)
    except SinkError as error:
        _LOG.warning("the next generation could not be announced, so readers fetch it when it is live: %s", error)
        return
    end = time.monotonic() + seconds
    while (remaining := end - time.monotonic()) > 0:
        check()
        live.tick()
        time.sleep(min(_ANNOUNCED_STEP_S, remaining))
