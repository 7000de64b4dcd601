"""Waiting for a store: for a bounded time where there is a fallback in memory, and without holding a slot at the gate.

Otherwise the requests that wait for a hanging Redis would fill the gate, and requests that need no store would be
refused.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TypeVar

from shop_directory.runtime.metrics import Metrics
from shop_directory.runtime.request_context import current

T = TypeVar("T")


class StoreUnavailable(Exception):  # noqa: N818 - it names the state that callers act on
    """A store did not answer, or answered with an error. The text is for the log, never for a caller (E5).

    It is `late` if the deadline of the request passed before the store's own time-out: the store may be available.
    """

    def __init__(self, text: str = "", *, late: bool = False) -> None:
        self.late = late
        super().__init__(text)


# For all stores of one request, which are asked one after the other: for tokens, then for quotas.
_WAIT_BUDGET_SECONDS: Final = 0.2
_MIN_WAIT_SECONDS: Final = 0.05
# A healthy store takes less: its callers keep their slots.
_BRIEF_SECONDS: Final = 0.05


@contextmanager
def timed_store_call(metrics: Metrics, store: str, operation: str) -> Iterator[None]:
    """Time and count a call of a store, which is `unavailable` if it raises."""
    started, outcome = time.monotonic(), "unavailable"
    try:
        yield
        outcome = "ok"
    finally:
        metrics.store_call(store, operation, outcome, time.monotonic() - started)


def store_wait_budget() -> float:
    """Seconds that the current request should wait for a store before it uses the fallback in memory."""
    request = current()
    waited = 0.0 if request is None else request.store_seconds
    return max(_MIN_WAIT_SECONDS, _WAIT_BUDGET_SECONDS - waited)


async def wait_for_store(task: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
    """Wait until a store has answered, for `seconds` at most; returns whether it has.

    After 50 ms the request's slot at the gate is free for others during the wait. The task is neither cancelled
    nor is its result read.
    """
    began = time.monotonic()
    request = current()
    brief = _BRIEF_SECONDS if seconds is None else min(seconds, _BRIEF_SECONDS)
    try:
        done, _ = await asyncio.wait({task}, timeout=brief)
        if done or (seconds is not None and seconds <= brief):
            return bool(done)
        with nullcontext() if request is None or request.suspended is None else request.suspended():
            done, _ = await asyncio.wait({task}, timeout=None if seconds is None else seconds - brief)
        return bool(done)
    finally:
        if request is not None:
            request.store_seconds += time.monotonic() - began


async def store_answer(work: Coroutine[Any, Any, T]) -> T:
    """Await a store's answer as `wait_for_store` does; the call is cancelled with its caller."""
    request = current()
    if request is None or request.suspended is None:
        return await work
    task = asyncio.ensure_future(work)
    try:
        await wait_for_store(task)
    finally:
        task.cancel()
    return task.result()
