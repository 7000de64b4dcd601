"""Waiting for a store: for a short time where memory can answer instead, and without holding a place at the gate.

A place at the gate is for work. Requests that wait for a Redis that hangs would otherwise fill the gate, and those that
need no store would be refused as too many.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import Any, Final, TypeVar

from service.runtime.request_context import current

T = TypeVar("T")

# Of one request in total: tokens and quotas are asked for one after the other.
_PATIENCE_SECONDS: Final = 0.2
_LEAST_PATIENCE_SECONDS: Final = 0.05
# A store that answers as always takes less: its callers keep their places.
_BRIEF_SECONDS: Final = 0.05


def patience() -> float:
    """Seconds that the request under way should wait for a store before it goes on with what memory says."""
    request = current()
    waited = 0.0 if request is None else request.store_seconds
    return max(_LEAST_PATIENCE_SECONDS, _PATIENCE_SECONDS - waited)


async def wait_for_store(task: "asyncio.Future[Any]", seconds: float | None = None) -> bool:
    """Wait until a store has answered; a wait of more than 50 ms gives back the request's place at the gate.

    Args:
        task: ends with the store's answer; it is neither cancelled nor asked for its result.
        seconds: how long to wait; None for as long as it takes.

    Returns:
        Whether it has ended.
    """
    began = time.monotonic()
    request = current()
    brief = _BRIEF_SECONDS if seconds is None else min(seconds, _BRIEF_SECONDS)
    try:
        done, _ = await asyncio.wait({task}, timeout=brief)
        if done or (seconds is not None and seconds <= brief):
            return bool(done)
        with nullcontext() if request is None or request.place is None else request.place.given_back():
            done, _ = await asyncio.wait({task}, timeout=None if seconds is None else seconds - brief)
        return bool(done)
    finally:
        if request is not None:
            request.store_seconds += time.monotonic() - began


async def store_answer(work: Coroutine[Any, Any, T]) -> T:
    """What a store answers, waited for as by `wait_for_store`; it is asked no more when the caller is cancelled."""
    request = current()
    if request is None or request.place is None:
        return await work
    task = asyncio.ensure_future(work)
    try:
        await wait_for_store(task)
    finally:
        task.cancel()
    return task.result()
