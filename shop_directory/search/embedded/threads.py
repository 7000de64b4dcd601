"""Threads for searches, which nothing can stop once they run: a bounded number of places, and each caller has a share.

A search keeps its place until it ends, even if its request has been cancelled; so requests that are cancelled and sent
again do not add up. At least half of the threads are free for other callers, whatever one caller asks for.
"""

import asyncio
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Final, ParamSpec, TypeVar

from shop_directory.runtime.request_context import current
from shop_directory.search.failures import EngineBusy

P = ParamSpec("P")
T = TypeVar("T")

# The places for searches that run or wait. A caller's half is the default number of requests that a worker works on.
PLACES: Final = 64


def threads_of_worker(workers: int) -> int:
    """The number of threads of one of a machine's workers, which share two per processor: more are not faster."""
    return max(2, math.ceil(2 * (os.cpu_count() or 1) / workers))


@dataclass(slots=True)
class _Share:
    """The threads that one caller may use, and the number of its places that are taken."""

    free: asyncio.Semaphore
    taken: int = field(default=0)


class SearchThreads:
    """Runs searches in threads."""

    def __init__(self, threads: int, places: int = PLACES) -> None:
        """Start no thread yet; `places` bounds the searches that run or wait. There must be at least two threads."""
        self._threads = threads
        self._places = places
        self._taken = 0
        self._pool = ThreadPoolExecutor(threads, "search")
        self._free = asyncio.Semaphore(threads)
        self._shares: dict[str, _Share] = {}

    async def run(self, search: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a search in a thread when one is free; EngineBusy if all places, or the caller's share, are taken."""
        caller = "" if (request := current()) is None else request.caller
        share = self._shares.get(caller) or _Share(asyncio.Semaphore(self._threads // 2 if caller else self._threads))
        if self._taken >= self._places or (caller and share.taken >= self._places // 2):
            raise EngineBusy
        self._shares[caller] = share
        self._taken += 1
        share.taken += 1
        try:
            await share.free.acquire()
            try:
                await self._free.acquire()
            except BaseException:
                share.free.release()
                raise
        except BaseException:
            self._leave(caller, share)
            raise
        running = self._pool.submit(copy_context().run, partial(search, *args, **kwargs))
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wrap_future(running)
        finally:
            if running.done():
                self._end(caller, share)
            else:  # cancelled: it runs on until it ends
                running.add_done_callback(lambda _: loop.call_soon_threadsafe(self._end, caller, share))

    def close(self) -> None:
        """Wait for the searches that run."""
        self._pool.shutdown()

    def _end(self, caller: str, share: _Share) -> None:
        self._free.release()
        share.free.release()
        self._leave(caller, share)

    def _leave(self, caller: str, share: _Share) -> None:
        self._taken -= 1
        share.taken -= 1
        if not share.taken:
            self._shares.pop(caller, None)
