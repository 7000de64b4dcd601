"""Reconciles continuously, a slice between two micro-batches, at a bounded rate (V1).

A slice does not wait: it compares what the rate allows for the time since the last one, so changes are not delayed.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from indexer.jobs.defaults import RECONCILE_RATE
from indexer.reconcile.findings import FaultReport
from indexer.reconcile.generation import PAGE, Comparison, Cursor, check_aliases, derived_tables_match
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationEditor, Sink
from indexer.state.background import BackgroundQuery
from indexer.state.state import State

_ROUND_INTERVAL_S: Final = 60.0
# How long a slice waits for the checks in the background, which take long for a million shops.
_CHECK_WAIT_S: Final = 0.2
_LOG: Final = logging.getLogger(__name__)


class Reconciler:
    """Compares the live generation with its state in rounds, a slice at a time."""

    def __init__(
        self,
        sink: Sink,
        *,
        rate: float = RECONCILE_RATE,
        rest: float = _ROUND_INTERVAL_S,
        on_round: Callable[[FaultReport], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the options; nothing is read yet.

        `rate` is the largest number of documents a second, `rest` the least seconds from the start of one round to the
        start of the next. `on_round` is called with the findings of each finished round.
        """
        self._sink, self._rate, self._rest = sink, rate, rest
        self._on_round, self._clock, self._now = on_round, clock, now
        self._state: State | None = None
        self._cursor: Cursor | None = Cursor()
        self._started = self._last = now()
        self._allowed = 0.0
        self._checks: BackgroundQuery | None = None
        self._is_correct: bool | None = None
        self.round = FaultReport()
        self.total = FaultReport()

    def slice(self, state: State, editor: GenerationEditor, check: Callable[[], None]) -> None:
        """Compare, and repair, what the rate allows for the time since the last slice, at most for one second.

        `check` raises when the lease is lost.

        Raises:
            SinkError: the engine failed, or the lease is lost; the next slice continues from the same position.
        """
        self._allow()
        if state is not self._state:
            self._state, self._cursor = state, Cursor()
            self._start_round()
        elif self._cursor is None and self._now() - self._started >= self._rest:
            self._cursor = Cursor()
            self._start_round()
        is_new_round = self._cursor is not None and self._cursor.kind < 0
        if is_new_round and not self._has_checked(state, editor):
            return
        if is_new_round and self._allowed >= 1:
            drift = check_aliases(self._sink, repair=True, check=check)
            self._count(drift)
            if drift.repaired:
                return  # the editor may have the former stamp: the next slice opens another one
        # If the checks in the background found a fault, or files that are no longer used had gone meanwhile, the
        # comparison checks the current tables and files itself.
        comparison = Comparison(
            state, editor, repair=True, check=check, clock=self._clock, is_checked=self._is_correct is True
        )
        while self._cursor is not None and self._allowed >= 1:
            found, self._cursor = comparison.step(self._cursor, min(PAGE, int(self._allowed)))
            self._allowed -= found.checked
            self._count(found)
            if self._cursor is None:
                self._end_round()

    def close(self) -> None:
        """End the checks in the background."""
        if self._checks is not None:
            self._checks.close()
            self._checks = None

    def _has_checked(self, state: State, editor: GenerationEditor) -> bool:
        if self._is_correct is None:
            if self._checks is None:
                self._checks = BackgroundQuery(
                    state.path, lambda snapshot, check: derived_tables_match(snapshot) and _is_whole(editor, check)
                )
            if not self._checks.answered(_CHECK_WAIT_S):
                return False
            self._is_correct = self._checks.answer is True
            self.close()
        return True

    def _allow(self) -> None:
        now = self._now()
        self._allowed = min(self._rate, self._allowed + self._rate * (now - self._last))
        self._last = now

    def _start_round(self) -> None:
        self.close()
        self._is_correct = None
        self._started, self.round = self._now(), FaultReport()

    def _count(self, found: FaultReport) -> None:
        self.round += found
        self.total += found

    def _end_round(self) -> None:
        self.round = replace(self.round, seconds=self._now() - self._started)
        if self.round.total:
            _LOG.warning("reconcile found %d faults and repaired %d", self.round.total, self.round.repaired)
        self._on_round(self.round)


def _is_whole(editor: GenerationEditor, check: Callable[[], None]) -> bool:
    """Whether the typeahead's files are whole; also false if they can't be read."""
    try:
        return not editor.typeahead_damaged(check)
    except (OSError, SinkError):
        return False
