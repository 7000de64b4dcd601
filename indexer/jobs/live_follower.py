"""Keeps the live generation up to date while a job with the lease prepares the next one, and announces that one (V3).

A shop that goes under review during a long build must not stay visible until the build ends.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from index_mappings.generations import Stamp
from indexer.disk_space import DiskFullError, full_disk_as_error
from indexer.jobs.change_applier import NOTHING, Follower
from indexer.jobs.follower_status import StatusTeller
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseLostError
from indexer.sinks.protocol import Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State
from indexer.state.states import States

_INTERVAL_S: Final = 1.0
_ANNOUNCED_STEP_S: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptLive:
    """The live generation and its state.

    Attributes:
        sink, states: where they are.
        live: the stamp; None when no generation is live yet.
        letters: takes changes that can't be applied.
        check: raises when the lease is lost.
    """

    sink: Sink
    states: States
    live: Stamp | None
    letters: DeadLetters
    check: Callable[[], None]

    def follow(self, changes: ChangeSource | None, *, shared: bool = False) -> "LiveFollower":
        """Follow these changes; the follower does nothing without changes, or when the state is lost.

        Args:
            changes: the source of changes.
            shared: whether the caller needs them later, and closes them.
        """
        closed = None if shared else changes
        if changes is None or self.live is None or not self.states.has(self.live.generation):
            return LiveFollower(None, closed)
        try:
            state = self.states.open(self.live.generation)
        except (CatalogueError, DiskFullError):
            _LOG.warning("the live generation is not followed during this build: its state cannot be used")
            return LiveFollower(None, closed)
        return LiveFollower(self._step(self.live.generation, state, changes), closed, state)

    def _step(self, generation: str, state: State, changes: ChangeSource) -> Callable[[], None]:
        status = StatusTeller(changes, only_known=True)

        def step() -> None:
            # Opened for each micro-batch: the embedded engine has memory for one writer at a time.
            editor = self.sink.edit(generation)
            try:
                done = Follower(state, editor, changes, self.letters, self.check).step()
                status.write(state, editor, self.check, busy=done != NOTHING, behind=done.more)
            finally:
                editor.close()

        return step


class LiveFollower:
    """Applies a micro-batch from time to time, when its owner calls `tick`."""

    def __init__(
        self, step: Callable[[], None] | None, changes: ChangeSource | None, state: State | None = None
    ) -> None:
        self._step = step
        self._changes = changes
        self._state = state
        self._next = 0.0

    def tick(self) -> None:
        """Apply one micro-batch, if a second has passed since the last one.

        Raises:
            LeaseLostError: another job may have started.
        """
        if self._step is None or time.monotonic() < self._next:
            return
        try:
            with full_disk_as_error():
                self._step()
        except LeaseLostError:
            raise
        except (CatalogueError, SinkError, DiskFullError) as error:
            # The build goes on: it reads the same changes itself, and the next tick tries again.
            _LOG.warning("the live generation could not follow: %s", type(error).__name__)
        self._next = time.monotonic() + _INTERVAL_S

    def close(self) -> None:
        """Close the state and the changes."""
        if self._state is not None:
            self._state.close()
        if self._changes is not None:
            self._changes.close()


def announce(sink: Sink, generation: str, check: Callable[[], None], live: LiveFollower) -> None:
    """Announce a sealed generation, and give readers the time to fetch its typeahead before it is published.

    No answer depends on it, so a failure is logged and the publication goes on.

    Args:
        sink: where the generation is.
        generation: its name.
        check: raises when the lease is lost; called while waiting.
        live: follows the live generation while waiting.
    """
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
