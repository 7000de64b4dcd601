"""A circuit breaker: while another part fails, callers are told at once instead of waiting for it each in turn.

It opens when at least half of enough recent calls failed, so that a few bad ones among many good ones, or one caller's
own costly ones, don't cut off everybody. Open, it lets one call through every second to see whether the part is back.

Why our own: of the breakers on PyPI those that are kept count failures in a row, and what must be refused in one call
for all is here decided in one event loop, without locks, threads or storage.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from service.runtime.metrics import NOTHING_MEASURED, Metrics

T = TypeVar("T")

_WINDOW_S: Final = 5.0
_ENOUGH_CALLS: Final = 10
# Of thousands of calls a second the newest are enough to tell.
_MOST_CALLS: Final = 1_000
_OPEN_SHARE: Final = 0.5
_PROBE_EVERY_S: Final = 1.0


class CircuitOpen(Exception):  # noqa: N818 - it names the state that the caller acts on
    """The part was not asked, as it failed too often just now."""


class Circuit:
    """The circuit to one part."""

    def __init__(
        self,
        part: str,
        failures: tuple[type[Exception], ...],
        metrics: Metrics = NOTHING_MEASURED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Close the circuit.

        Args:
            part: its name in the measures.
            failures: the exceptions that say that the part fails; any other one is an answer.
            metrics: are told of each change.
            clock: seconds that never go back.
        """
        self._part = part
        self._failures = failures
        self._metrics = metrics
        self._clock = clock
        # When each recent call ended, and whether it failed.
        self._calls: deque[tuple[float, bool]] = deque()
        self._failed = 0
        self._open = False
        self._probe_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused, but for a probe now and then."""
        return self._open

    async def call(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the part.

        Raises:
            CircuitOpen: it is not asked.
        """
        probing = self.begin()
        try:
            result = await ask()
        except Exception as error:
            self.end(probing=probing, failed=isinstance(error, self._failures))
            raise
        self.end(probing=probing, failed=False)
        return result

    def begin(self) -> bool:
        """Let a call begin, for who asks the part himself and says `end` when it has ended.

        One that is cancelled need not end: a probe leaves the next try to time.

        Returns:
            whether it is a probe.

        Raises:
            CircuitOpen: the part is not to be asked.
        """
        if not self._open:
            return False
        if self._clock() < self._probe_at:
            raise CircuitOpen
        # Before it is asked: nobody else may try meanwhile.
        self._probe_at = self._clock() + _PROBE_EVERY_S
        self._metrics.circuit(self._part, "half_open")
        return True

    def end(self, *, probing: bool, failed: bool) -> None:
        """A call has ended.

        Args:
            probing: as `begin` returned.
            failed: whether the part did; an answer is none, however unwelcome.
        """
        if not probing:
            self._note(failed=failed)
        elif failed:
            self._probe_at = self._clock() + _PROBE_EVERY_S
            self._metrics.circuit(self._part, "open")
        else:
            self._close()

    def _note(self, *, failed: bool) -> None:
        now = self._clock()
        self._calls.append((now, failed))
        self._failed += failed
        while self._calls[0][0] <= now - _WINDOW_S or len(self._calls) > _MOST_CALLS:
            self._failed -= self._calls.popleft()[1]
        if failed and len(self._calls) >= _ENOUGH_CALLS and self._failed >= _OPEN_SHARE * len(self._calls):
            if not self._open:
                self._metrics.circuit(self._part, "open")
            self._open = True
            self._probe_at = now + _PROBE_EVERY_S

    def _close(self) -> None:
        self._open = False
        self._calls.clear()
        self._failed = 0
        self._metrics.circuit(self._part, "closed")
