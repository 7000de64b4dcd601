"""Following all day: micro-batch after micro-batch into whatever generation is live (G3).

The lease is held for one micro-batch at a time, so a build never waits long; while one runs it follows by itself. What
fails is tried again, later and later; only a lost state ends it, as only a full build makes one.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from indexer.disk_space import DiskFullError, full_disk_as_error
from indexer.jobs.catching_up import NOTHING, CaughtUp, Follower
from indexer.jobs.operations import TELL_EVERY_S, StatusTeller
from indexer.jobs.pace import MICRO_BATCH
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHeldError, holding
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State, StateError
from indexer.state.states import States

_LONGEST_PAUSE_S: Final = 30.0
_LOG: Final = logging.getLogger(__name__)


class Reconciling(Protocol):
    """Compares the index with its state, bit by bit."""

    def slice(self, state: State, editor: GenerationEditor, check: Callable[[], None]) -> None:
        """Compare and repair a few documents, as many as the rate allows since the last time."""

    def close(self) -> None:
        """End what runs in the background."""


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """How following is done.

    Attributes:
        interval: seconds between two looks for changes.
        once: end as soon as nothing more is there, and raise what fails instead of trying again.
        micro_batch: changes that are shown at once, at most.
        tell_every: seconds between two times that operators are told how following does while nothing comes.
    """

    interval: float = 1.0
    once: bool = False
    micro_batch: int = MICRO_BATCH
    tell_every: float = TELL_EVERY_S


@dataclass(frozen=True, slots=True)
class FollowSummary:
    """What following did, from its beginning to its end.

    Attributes:
        generation: the one that was followed last; None when there was no time for any.
        changes: what came of them.
        failures: how often a micro-batch had to be tried again.
        untold: how often its status could not be written for operators.
        seconds: how long it went on.
    """

    generation: str | None
    changes: CaughtUp
    failures: int
    untold: int
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
        tell: Callable[[CaughtUp], None] = lambda _: None,
    ) -> None:
        """Keep the parts; nothing is asked yet.

        Args:
            sink: where generations are.
            states: their states.
            changes: where changes come from; None when only the index is to be compared with its state.
            options: how.
            reconciling: compares the index with its state, a slice after each micro-batch.
            tell: is told of every micro-batch that did something.
        """
        self._sink, self._states, self._changes, self._options = sink, states, changes, options
        self._reconciling = reconciling
        self._tell = tell
        self._teller = StatusTeller(changes, options.tell_every)
        self._letters = DeadLetters(states.dead_letters)
        self._lease = sink.lease()
        self._state: State | None = None
        self._generation: str | None = None
        self._waiting = False

    def run(self, stop: threading.Event) -> FollowSummary:
        """Follow until `stop` is set, the stream of changes ends, or, once, nothing more is there.

        Raises:
            StateError: the state of the live generation is lost; build anew.
            CatalogueError, SinkError, DiskFullError: with `once`, what failed.
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
                    _LOG.warning("following failed and is tried again in %.0f s: %s", pause, error)
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
        return FollowSummary(self._generation, total, failures, self._teller.untold, time.monotonic() - started)

    def _micro_batch(self) -> CaughtUp | None:
        """One micro-batch; None while another job has the lease."""
        try:
            with holding(self._lease, "follow", 0):
                self._waiting = False
                return self._step()
        except LeaseHeldError as error:
            if not self._waiting:
                _LOG.warning("waiting: %s", error)
            self._waiting = True
            return None

    def _step(self) -> CaughtUp:
        live = self._sink.live()
        if live is None:
            raise StateError("nothing is published that could follow: build first, by shop-directory index build")
        if not live.readable:
            raise StateError(f"the live generation has schema version {live.schema_version}: build anew")
        state = self._state_of(live.generation)
        editor = self._sink.edit(live.generation)
        try:
            follower = Follower(state, editor, self._changes, self._letters, self._lease.check)
            done = follower.step(self._options.micro_batch)
            self._teller.tell(state, editor, self._lease.check, busy=done != NOTHING, behind=done.more)
            if self._reconciling is not None:
                self._reconciling.slice(state, editor, self._lease.check)
        finally:
            editor.close()
        if done != NOTHING:
            self._tell(done)
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
