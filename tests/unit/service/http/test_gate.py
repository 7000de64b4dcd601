"""The gate: so many requests at a time, the next one is refused before anything is done for it, and slots come back."""

import pytest

from service.errors import OverloadedError
from service.http.middleware import Gate
from service.runtime.telemetry import Metrics


class Counted(Metrics):
    """Adds up what enters and leaves."""

    def __init__(self) -> None:
        self.now = 0
        self.changes: list[int] = []

    def in_flight(self, change: int) -> None:
        """Add it."""
        self.now += change
        self.changes.append(change)


def test_a_request_beyond_the_bound_is_refused_and_takes_no_slot() -> None:
    metrics = Counted()
    gate = Gate(2, metrics)
    gate.enter()
    gate.enter()
    for refuses in (gate.enter, gate.check):
        with pytest.raises(OverloadedError):
            refuses()
    assert gate.in_flight == metrics.now == 2
    gate.leave()
    gate.leave()
    assert (gate.in_flight, metrics.changes) == (0, [1, 1, -1, -1])
