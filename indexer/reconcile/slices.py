"""Reconciles all day, a slice between two micro-batches: never faster than its rate, and from where it stood (V1).

A slice never waits: it does as much as the time since the last one allows, so changes are not held up.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from indexer.jobs.pace import RECONCILE_RATE
from indexer.reconcile.findings import Found
from indexer.reconcile.generation import PAGE, Comparison, Place, check_place
from indexer.reconcile.state import sums_hold
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.state.background import BackgroundLook
from indexer.state.state import State

_REST_S: Final = 60.0
# So long a slice waits for the check of the state's sums, which takes a minute for a million shops.
_SUMS_WAIT_S: Final = 0.2
_LOG: Final = logging.getLogger(__name__)


class Reconciler:
    """Goes round and round through whatever generation is live."""

    def __init__(
        self,
        sink: Sink,
        *,
        repair: bool = True,
        rate: float = RECONCILE_RATE,
        rest: float = _REST_S,
        tell: Callable[[Found], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Note how; nothing is asked yet.

        Args:
            sink: where the generations are.
            repair: whether faults are put right.
            rate: documents a second, at most.
            rest: seconds from the beginning of one round to that of the next, at least.
            tell: is told what each finished round found.
            clock: for stamps.
            now: the passing of time in seconds.
        """
        self._sink, self._repair, self._rate, self._rest = sink, repair, rate, rest
        self._tell, self._clock, self._now = tell, clock, now
        self._state: State | None = None
        self._place: Place | None = Place()
        self._began = self._last = now()
        self._allowed = 0.0
        self._look: BackgroundLook | None = None
        self._sums_hold: bool | None = None
        self.round = Found()
        self.total = Found()

    def slice(self, state: State, editor: GenerationEditor, check: Callable[[], None]) -> None:
        """Compare, and repair, what the time since the last slice allows: a second's worth at most.

        Args:
            state: of the live generation.
            editor: of the same generation.
            check: raises when the lease is lost.

        Raises:
            SinkError: the engine failed, or the lease is lost; the next slice goes on where this one stood.
        """
        self._allow()
        if state is not self._state:
            self._state, self._place = state, Place()
            self._begin()
        elif self._place is None and self._now() - self._began >= self._rest:
            self._place = Place()
            self._begin()
        is_new = self._place is not None and self._place.kind < 0
        if is_new and not self._are_sums_checked(state):
            return
        if is_new and self._allowed >= 1:
            astray = check_place(self._sink, repair=self._repair, check=check)
            self._note(astray)
            if astray.repaired:
                return  # the editor may know another stamp: the next slice has a fresh one
        # Where they do not hold as of the background's point in time, they are checked again here, as of now.
        comparison = Comparison(state, editor, self._repair, check, self._clock, sums_hold=self._sums_hold is True)
        while self._place is not None and self._allowed >= 1:
            found, self._place = comparison.step(self._place, min(PAGE, int(self._allowed)))
            self._allowed -= found.checked
            self._note(found)
            if self._place is None:
                self._end()

    def close(self) -> None:
        """End what runs in the background."""
        if self._look is not None:
            self._look.close()
            self._look = None

    def _are_sums_checked(self, state: State) -> bool:
        if self._sums_hold is None:
            if self._look is None:
                self._look = BackgroundLook(state.path, sums_hold)
            if not self._look.answered(_SUMS_WAIT_S):
                return False
            self._sums_hold = self._look.answer is True
            self.close()
        return True

    def _allow(self) -> None:
        now = self._now()
        self._allowed = min(self._rate, self._allowed + self._rate * (now - self._last))
        self._last = now

    def _begin(self) -> None:
        self.close()
        self._sums_hold = None
        self._began, self.round = self._now(), Found()

    def _note(self, found: Found) -> None:
        self.round += found
        self.total += found

    def _end(self) -> None:
        self.round = replace(self.round, seconds=self._now() - self._began)
        if self.round.total:
            _LOG.warning("reconcile found %d faults and repaired %d", self.round.total, self.round.repaired)
        self._tell(self.round)
