"""Keeping the live generation up to date while the next one is built: the builder has the lease, so it does it (V3).

A shop that goes under review during a long build must not stay visible until the build ends.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from index_mappings.generations import Stamp
from indexer.disk_space import DiskFullError, full_disk_as_error
from indexer.jobs.catching_up import NOTHING, Follower
from indexer.jobs.operations import StatusTeller
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseLostError
from indexer.sinks.protocol import Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State
from indexer.state.states import States

_EVERY_S: Final = 1.0
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptLive:
    """The live generation and its state.

    Attributes:
        sink, states: where they are.
        live: the stamp; None when nothing is live yet.
        letters: takes changes that can't be applied.
        check: raises when the lease is lost.
    """

    sink: Sink
    states: States
    live: Stamp | None
    letters: DeadLetters
    check: Callable[[], None]

    def following(self, changes: ChangeSource | None, *, shared: bool = False) -> "LiveFollower":
        """Follow these changes; does nothing where there are none, or the state is lost.

        Args:
            changes: where changes come from.
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
        teller = StatusTeller(changes, only_known=True)

        def step() -> None:
            # Opened for each micro-batch: an embedded index has room for one writer's memory only.
            editor = self.sink.edit(generation)
            try:
                done = Follower(state, editor, changes, self.letters, self.check).step()
                teller.tell(state, editor, self.check, busy=done != NOTHING, behind=done.more)
            finally:
                editor.close()

        return step


class LiveFollower:
    """Follows now and then, when it is told that time has passed."""

    def __init__(
        self, step: Callable[[], None] | None, changes: ChangeSource | None, state: State | None = None
    ) -> None:
        self._step = step
        self._changes = changes
        self._state = state
        self._next = 0.0

    def tick(self) -> None:
        """Take one micro-batch, if a second has passed since the last one.

        Raises:
            LeaseLostError: another job may have begun.
        """
        if self._step is None or time.monotonic() < self._next:
            return
        try:
            with full_disk_as_error():
                self._step()
        except LeaseLostError:
            raise
        except (CatalogueError, SinkError, DiskFullError) as error:
            # The build goes on: it reads the same changes by itself, and the next tick tries again.
            _LOG.warning("the live generation could not follow: %s", type(error).__name__)
        self._next = time.monotonic() + _EVERY_S

    def close(self) -> None:
        """Let go of the state and the changes."""
        if self._state is not None:
            self._state.close()
        if self._changes is not None:
            self._changes.close()
