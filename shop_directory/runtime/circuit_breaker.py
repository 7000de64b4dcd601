"""A circuit breaker: while another part fails, calls fail immediately instead of waiting for it.

It opens when at least half of enough recent calls failed, so that a few failures among many calls, or the costly calls
of one caller, do not affect everybody. An open circuit lets one call per second through as a probe.

Why our own: the maintained breakers on PyPI count consecutive failures, and bring locks, threads or storage that one
event loop does not need.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from shop_directory.runtime.metrics import NO_METRICS, Metrics

T = TypeVar("T")

_WINDOW_S: Final = 5.0
_MIN_CALLS: Final = 10
# The newest calls are a large enough sample, however many there are.
_MAX_CALLS: Final = 1_000
_OPEN_SHARE: Final = 0.5
_PROBE_INTERVAL_S: Final = 1.0


class CircuitOpen(Exception):  # noqa: N818 - it names the state that the caller acts on
    """The part was not called, because its recent calls failed too often."""


class CircuitBreaker:
    """The circuit breaker of one part."""

    def __init__(
        self,
        part: str,
        failures: tuple[type[Exception], ...],
        metrics: Metrics = NO_METRICS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`part` is its name in the metrics, which count changes of state; only `failures` count as failures of it."""
        self._part = part
        self._failures = failures
        self._metrics = metrics
        self._clock = clock
        # The end of each recent call, and whether it failed.
        self._calls: deque[tuple[float, bool]] = deque()
        self._failed = 0
        self._open = False
        self._probe_at = 0.0

    async def call(self, request: Callable[[], Awaitable[T]]) -> T:
        """Call the part, or raise CircuitOpen."""
        probing = self.begin()
        try:
            result = await request()
        except Exception as error:
            self.end(probing=probing, failed=isinstance(error, self._failures))
            raise
        self.end(probing=probing, failed=False)
        return result

    def begin(self) -> bool:
        """Start a call without `call`; CircuitOpen, or whether it is a probe. `end` follows unless it is cancelled."""
        if not self._open:
            return False
        if self._clock() < self._probe_at:
            raise CircuitOpen
        # Set before the call: only one probe at a time.
        self._probe_at = self._clock() + _PROBE_INTERVAL_S
        self._metrics.circuit(self._part, "half_open")
        return True

    def end(self, *, probing: bool, failed: bool) -> None:
        """End a call; `probing` is what `begin` returned. An error that is an answer is not a failure."""
        if not probing:
            self._record(failed=failed)
        elif failed:
            self._probe_at = self._clock() + _PROBE_INTERVAL_S
            self._metrics.circuit(self._part, "open")
        else:
            self._close()

    def _record(self, *, failed: bool) -> None:
        now = self._clock()
        self._calls.append((now, failed))
        self._failed += failed
        while self._calls[0][0] <= now - _WINDOW_S or len(self._calls) > _MAX_CALLS:
            self._failed -= self._calls.popleft()[1]
        if failed and len(self._calls) >= _MIN_CALLS and self._failed >= _OPEN_SHARE * len(self._calls):
            if not self._open:
                self._metrics.circuit(self._part, "open")
            self._open = True
            self._probe_at = now + _PROBE_INTERVAL_S

    def _close(self) -> None:
        self._open = False
        self._calls.clear()
        self._failed = 0
        self._metrics.circuit(self._part, "closed")
