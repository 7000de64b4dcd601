"""The follow job: applies changes to the live generation, micro-batch after micro-batch (G3).

The lease is held for one micro-batch at a time, so a build never waits long; a running build follows changes itself.
Failures are retried with growing pauses. Only a lost state ends the job, as only a full build can replace a state.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol

from indexer.disk_space import DiskFullError, full_disk_as_error
from indexer.jobs.change_applier import ChangeApplier
from indexer.jobs.follower_status import STATUS_INTERVAL_S, StatusWriter
from indexer.jobs.pace import MICRO_BATCH
from indexer.jobs.update import NOTHING, ChangeCounts
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, holding
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State, StateError, States

_LONGEST_PAUSE_S: Final = 30.0
_LOG: Final = logging.getLogger(__name__)


class Reconciling(Protocol):
    """Compares the index with its state, a slice at a time."""

    def slice(self, state: State, editor: GenerationEditor, check: Callable[[], None]) -> None:
        """Compare, and repair, as many documents as the rate allows for the time since the last slice."""

    def close(self) -> None:
        """End the work in the background."""


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """The options of the follow job.

    Attributes:
        interval: seconds between two reads of changes.
        once: end when no more changes are available, and raise failures instead of retrying.
        micro_batch: the largest number of changes that readers see together.
        status_interval: seconds between two statuses for operators while no change arrives.
    """

    interval: float = 1.0
    once: bool = False
    micro_batch: int = MICRO_BATCH
    status_interval: float = STATUS_INTERVAL_S


@dataclass(frozen=True, slots=True)
class FollowSummary:
    """What the follow job did.

    Attributes:
        generation: the last one that was followed; None when the job ended before the first micro-batch.
        changes: their counts.
        failures: how often a micro-batch failed and was retried.
        status_failures: how often the status for operators could not be written.
        seconds: the duration.
    """

    generation: str | None
    changes: ChangeCounts
    failures: int
    status_failures: int
    seconds: float


class Following:
    """Follows one source of changes."""

    def __init__(
        self,
        sink: Sink,
        states: States,
        changes: ChangeSource | None,
        options: FollowOptions,
        *,
        reconciling: Reconciling | None = None,
        on_batch: Callable[[ChangeCounts], None] = lambda _: None,
    ) -> None:
        """Store the parts; nothing is read yet.

        Args:
            sink: where generations are.
            states: their states.
            changes: the source of changes; None when only the index is to be compared with its state.
            options: of the job.
            reconciling: compares the index with its state, a slice after each micro-batch.
            on_batch: called after each micro-batch that changed something.
        """
        self._sink, self._states, self._changes, self._options = sink, states, changes, options
        self._reconciling = reconciling
        self._on_batch = on_batch
        self._status = StatusWriter(changes, options.status_interval)
        self._letters = DeadLetters(states.dead_letters)
        self._lease = sink.lease()
        self._state: State | None = None
        self._generation: str | None = None
        self._waiting = False

    def run(self, stop: threading.Event) -> FollowSummary:
        """Follow until `stop` is set, the stream of changes ends or, with `once`, no more changes are available.

        Raises:
            StateError: the state of the live generation is lost; a full build makes a new one.
            CatalogueError, SinkError, DiskFullError: a failure, with `once`.
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
                    stop.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
                    continue
                pause = self._options.interval
                if done is not None:
                    total += done
                    if done.more:
                        continue
                    if self._options.once or (self._changes is not None and self._changes.ended):
                        break
                stop.wait(self._options.interval)
        finally:
            if self._reconciling is not None:
                self._reconciling.close()
            self._close_state()
            self._letters.close()
        return FollowSummary(
            self._generation, total, failures, self._status.status_failures, time.monotonic() - started
        )

    def _micro_batch(self) -> ChangeCounts | None:
        """Apply one micro-batch; None while another job has the lease."""
        try:
            with holding(self._lease, "follow", 0):
                self._waiting = False
                return self._step()
        except LeaseHeldError as error:
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
        state = self._state_of(live.generation)
        with closing(self._sink.edit(live.generation)) as editor:
            applier = ChangeApplier(state, editor, self._changes, self._letters, self._lease.check)
            done = applier.step(self._options.micro_batch)
            self._status.write(state, editor, self._lease.check, busy=done != NOTHING, behind=done.more)
            if self._reconciling is not None:
                self._reconciling.slice(state, editor, self._lease.check)
        if done != NOTHING:
            self._on_batch(done)
        return done

    def _state_of(self, generation: str) -> State:
        if self._state is None or self._generation != generation:
            self._close_state()
            self._state = self._states.open(generation)
            self._generation = generation
        return self._state

    def _close_state(self) -> None:
        if self._state is not None:
            self._state.close()
            self._state = None
