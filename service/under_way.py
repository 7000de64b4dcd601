"""The request that is being worked on: its one deadline, what it has cost so far, and who must know when its caller leaves.

It travels in a context variable, so that engines and stores find it without every signature in between naming it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final


@dataclass(slots=True)
class UnderWay:
    """One request.

    Attributes:
        request_id: as the answer and the log name it.
        began: seconds of the monotonic clock.
        deadline: seconds of the monotonic clock; what is not done by then is not waited for.
        generation: that the answer comes from, once known.
        engine_calls: requests to the search engine so far.
        engine_seconds: spent waiting for them.
        left: called when the caller has gone: what still works for it may stop.
    """

    request_id: str
    began: float
    deadline: float
    generation: str | None = None
    engine_calls: int = 0
    engine_seconds: float = 0.0
    left: list[Callable[[], None]] = field(default_factory=list)

    def remaining(self) -> float:
        """Seconds until the deadline; not below 0."""
        return max(0.0, self.deadline - time.monotonic())

    def caller_left(self) -> None:
        """Tell everybody who works for it."""
        for stop in tuple(self.left):
            stop()


_CURRENT: Final[ContextVar[UnderWay | None]] = ContextVar("the request under way", default=None)


def current() -> UnderWay | None:
    """The request that the running task works for; None outside of any."""
    return _CURRENT.get()


def time_left(most: float) -> float:
    """Seconds that a call to another machine may take: what the request has left, at most `most`."""
    request = _CURRENT.get()
    return most if request is None else min(most, request.remaining())


@contextmanager
def working_on(request: UnderWay) -> Iterator[UnderWay]:
    """Everything within is done for this request."""
    mark = _CURRENT.set(request)
    try:
        yield request
    finally:
        _CURRENT.reset(mark)


@contextmanager
def for_nobody_in_particular() -> Iterator[None]:
    """What is done within is shared by many requests: no single one's deadline bounds it."""
    mark = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(mark)
