"""Keeps the live generation up to date while a job with the lease prepares the next one, and announces that one (V3).

A shop that goes under review during a long build must not stay visible until the build ends.
"""

import logging
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final

from indexer.disk_space import DiskFullError, full_disk_as_error
from indexer.jobs.change_applier import ChangeApplier
from indexer.jobs.follower_status import StatusWriter
from indexer.jobs.update import NOTHING
from indexer.records.problems import CatalogueError
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseLostError
from indexer.sinks.protocol import Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.state import State, States

_INTERVAL_S: Final = 1.0
_ANNOUNCED_STEP_S: Final = 0.5
_LOG: Final = logging.getLogger(__name__)


class LiveFollower:
    """Applies changes to the live generation from time to time, when its owner calls `tick`.

    It does nothing without changes, or when the state of the live generation is lost.
    """

    def __init__(
        self,
        sink: Sink,
        states: States,
        letters: DeadLetters,
        check: Callable[[], None],
        changes: ChangeSource | None,
    ) -> None:
        """Open the state of the live generation.

        Args:
            sink: where the generation is.
            states: where its state is.
            letters: takes changes that can't be applied.
            check: raises when the lease is lost.
            changes: the source of changes; the caller closes it.
        """
        self._sink, self._letters, self._check, self._changes = sink, letters, check, changes
        self._status = StatusWriter(changes, only_known=True)
        self._state: State | None = None
        self._next = 0.0
        live = None if changes is None else sink.live()
        if live is None or not states.has(live.generation):
            return
        self._generation = live.generation
        try:
            self._state = states.open(live.generation)
        except (CatalogueError, DiskFullError):
            _LOG.warning("the live generation is not followed during this build: its state cannot be used")

    def tick(self) -> None:
        """Apply one micro-batch, if a second has passed since the last one.

        Raises:
            LeaseLostError: another job may have started.
        """
        if self._state is None or time.monotonic() < self._next:
            return
        try:
            with full_disk_as_error():
                self._step(self._state)
        except LeaseLostError:
            raise
        except (CatalogueError, SinkError, DiskFullError) as error:
            # The build goes on: it reads the same changes itself, and the next tick tries again.
            _LOG.warning("the live generation could not follow: %s", type(error).__name__)
        self._next = time.monotonic() + _INTERVAL_S

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
