"""The current request in a context variable: its deadline, its costs so far, and callbacks for its end."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import getrandbits
from typing import Final

# The outcome of a request whose caller disconnected before the answer.
LEFT: Final = "left"
# Seconds that a whole answer may take, where no setting says otherwise.
REQUEST_SECONDS: Final = 1.8
_NO_SPAN: Final = nullcontext()


@dataclass(slots=True)
class RequestContext:
    """The state of one request; `began` and `deadline`, after which nothing is awaited, are monotonic seconds.

    `outcome` is `ok`, or the code of the problem that is the answer. It is None before there is an answer, as `status`
    is, over stdio always. `tool` is known to exist. `caller` is the address or network that counts as one caller.
    Within `suspended` the request only waits, and others may use its slot at the gate; None without a slot. `span`
    makes a client span from a system and an operation; None where the request is not traced.

    `on_answer` is called when the answer begins to be sent, `on_end` when the request has been answered or given up,
    and `on_disconnect` when the caller disconnects, to stop the work.
    """

    request_id: str
    began: float
    deadline: float
    generation: str | None = None
    outcome: str | None = None
    status: int | None = None
    tool: str | None = None
    caller: str = ""
    disconnected: bool = False
    engine_calls: int = 0
    engine_seconds: float = 0.0
    store_seconds: float = 0.0
    suspended: Callable[[], AbstractContextManager[None]] | None = None
    span: Callable[[str, str], AbstractContextManager[object]] | None = None
    on_answer: Callable[[], object] | None = None
    on_end: list[Callable[[], object]] = field(default_factory=list)
    on_disconnect: list[Callable[[], object]] = field(default_factory=list)

    @property
    def abandoned(self) -> bool:
        """Whether an answer would come too late: the caller has disconnected, or the deadline has passed."""
        return self.disconnected or time.monotonic() >= self.deadline

    def caller_left(self) -> None:
        """Note that the caller has disconnected, and run the callbacks."""
        self.disconnected = True
        for stop in tuple(self.on_disconnect):
            stop()


def new_request_id() -> str:
    """A new random request id."""
    # Not a secret, so a fast generator is enough.
    return f"{getrandbits(128):032x}"


def new_request_context(request_id: str, timeout: float = math.inf) -> RequestContext:
    """The context of a request that starts now and may take `timeout` seconds."""
    now = time.monotonic()
    return RequestContext(request_id, now, now + timeout)


_CURRENT: Final[ContextVar[RequestContext | None]] = ContextVar("current_request", default=None)


def current() -> RequestContext | None:
    """The context of the current task's request; None outside of a request."""
    return _CURRENT.get()


def client_span(system: str, operation: str) -> AbstractContextManager[object]:
    """A client span for a request to `opensearch`, `tantivy`, `redis` or `sqlite`, if the current request is traced."""
    request = _CURRENT.get()
    return _NO_SPAN if request is None or request.span is None else request.span(system, operation)


def remaining_seconds(limit: float) -> float:
    """Seconds that a call to another machine may take: `limit`, or less if the deadline comes first; at least 0."""
    request = _CURRENT.get()
    return limit if request is None else min(limit, max(0.0, request.deadline - time.monotonic()))


class _RequestBinding:
    """Within, this is the current request."""

    __slots__ = ("_request", "_token")

    def __init__(self, request: RequestContext) -> None:
        self._request = request

    def __enter__(self) -> RequestContext:
        self._token = _CURRENT.set(self._request)
        return self._request

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)


# A class costs a fraction of `contextmanager`, and each suggest request makes one.
bind_request: Final = _RequestBinding


@contextmanager
def detached_from_request() -> Iterator[None]:
    """Within, there is no current request: the work is shared by many, so no single deadline bounds it."""
    token = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(token)
