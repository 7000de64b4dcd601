"""The request that is being worked on: its one deadline, its costs so far, and who must know if its caller leaves.

It travels in a context variable, so that engines and stores find it without every signature in between naming it.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from service.runtime.overload import Place

# The outcome of a request whose caller did not wait for it.
LEFT: Final = "left"


@dataclass(slots=True)
class RequestContext:
    """One request.

    Attributes:
        request_id: as the answer and the log name it.
        began: seconds of the monotonic clock.
        deadline: seconds of the monotonic clock; what is not done by then is not waited for.
        generation: that the answer comes from, once known.
        outcome: `ok`, or the code of the problem that is the answer; None while there is none.
        tool: the name of the tool that it calls, once it is known that there is such a tool.
        gone: whether the caller has left.
        engine_calls: requests to the search engine so far.
        engine_seconds: spent waiting for them.
        store_seconds: spent waiting for stores so far.
        place: at the gate; None where it passed none.
        tracer: makes the spans of what is asked for it; None where nobody traces it.
        ended: called when it has been answered, or will not be.
        left: called when the caller has gone: what still works for it may stop.
    """

    request_id: str
    began: float
    deadline: float
    generation: str | None = None
    outcome: str | None = None
    tool: str | None = None
    gone: bool = False
    engine_calls: int = 0
    engine_seconds: float = 0.0
    store_seconds: float = 0.0
    place: "Place | None" = None
    tracer: "Tracer | None" = None
    ended: list[Callable[[], object]] = field(default_factory=list)
    left: list[Callable[[], object]] = field(default_factory=list)

    @property
    def pointless(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.gone or time.monotonic() >= self.deadline

    def remaining(self) -> float:
        """Seconds until the deadline; not below 0."""
        return max(0.0, self.deadline - time.monotonic())

    def caller_left(self) -> None:
        """Tell everybody who works for it."""
        self.gone = True
        for stop in tuple(self.left):
            stop()


def begun(request_id: str, timeout: float = math.inf) -> RequestContext:
    """A request that begins now and may take so many seconds."""
    now = time.monotonic()
    return RequestContext(request_id, now, now + timeout)


_CURRENT: Final[ContextVar[RequestContext | None]] = ContextVar("the request under way", default=None)


def current() -> RequestContext | None:
    """The request that the running task works for; None outside of any."""
    return _CURRENT.get()


def time_left(most: float) -> float:
    """Seconds that a call to another machine may take: what the request has left, at most `most`."""
    request = _CURRENT.get()
    return most if request is None else min(most, request.remaining())


class bind_request:  # noqa: N801 - a context; a class, as each key press makes one: `contextmanager` takes several times as long
    """Everything within is done for this request."""

    __slots__ = ("_mark", "_request")

    def __init__(self, request: RequestContext) -> None:
        self._request = request

    def __enter__(self) -> RequestContext:
        self._mark = _CURRENT.set(self._request)
        return self._request

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._mark)


@contextmanager
def detached_from_request() -> Iterator[None]:
    """What is done within is shared by many requests: no single one's deadline bounds it."""
    mark = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(mark)
