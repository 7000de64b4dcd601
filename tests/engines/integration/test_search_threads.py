"""Searches in threads, which nothing can stop: no caller keeps others waiting, and what waits is bounded (E1)."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

import pytest
import tantivy

from service.app import create_app
from service.errors import OverloadedError
from service.runtime.request_context import bind_request, new_request_context
from service.search.embedded import engine
from service.search.embedded.queries import OpenIndex, query_of
from service.search.embedded.threads import SearchThreads
from service.search.plan import Clause
from service.settings.service import Settings
from tests.support.problems import problem
from tests.support.rpc import Era, call
from tests.support.served import post, served, until_ready
from tests.support.worlds import embedded_world

pytestmark = pytest.mark.rule("E1.retry_after")

_FLOODER: Final = "203.0.113.7"
_OTHER: Final = "198.51.100.9"


def _search(threads: SearchThreads, caller: str, ends: Event) -> asyncio.Task[bool]:
    with bind_request(new_request_context("r")) as request:
        request.caller = caller
        return asyncio.create_task(threads.run(ends.wait))


@contextmanager
def _opened(threads: SearchThreads) -> Iterator[Event]:
    ends = Event()
    try:
        yield ends
    finally:
        ends.set()
        threads.close()


async def test_a_caller_has_half_of_the_threads_and_half_of_the_places() -> None:
    threads = SearchThreads(threads=4, places=8)
    at_once = Event()
    at_once.set()
    with _opened(threads) as ends:
        flood = [_search(threads, _FLOODER, ends) for _ in range(5)]
        # Two of its searches run and two wait, and this one is answered.
        assert await asyncio.wait_for(_search(threads, _OTHER, at_once), 5)
        with pytest.raises(OverloadedError):
            await flood.pop()
        ends.set()
        assert await asyncio.gather(*flood) == [True] * 4
        # What ended has left its places.
        assert await asyncio.gather(*(_search(threads, _FLOODER, at_once) for _ in range(4))) == [True] * 4


async def test_all_places_together_are_bounded_and_a_search_without_a_caller_has_no_share() -> None:
    threads = SearchThreads(threads=2, places=6)
    with _opened(threads) as ends:
        running = [_search(threads, caller, ends) for caller in ("", "", "", "", _FLOODER, _FLOODER)]
        with pytest.raises(OverloadedError):
            await _search(threads, _OTHER, ends)
        ends.set()
        assert await asyncio.gather(*running) == [True] * 6


async def test_a_cancelled_search_keeps_its_place_until_it_ends_and_one_that_waits_leaves_at_once() -> None:
    threads = SearchThreads(threads=2, places=4)
    with _opened(threads) as ends:
        runs, waits = _search(threads, _FLOODER, ends), _search(threads, _FLOODER, ends)
        await asyncio.sleep(0)
        for cancelled in (runs, waits):
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        second = _search(threads, _FLOODER, ends)
        with pytest.raises(OverloadedError):
            await _search(threads, _FLOODER, ends)
        ends.set()
        assert await asyncio.wait_for(second, 5)


def test_a_search_without_a_place_is_refused_as_overloaded_on_each_transport_and_another_caller_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ends = Event(), Event()

    def first_waits(index: OpenIndex, clause: Clause) -> tantivy.Query | None:
        if not begun.is_set():
            begun.set()
            ends.wait(10)
        return query_of(index, clause)

    monkeypatch.setattr(engine, "query_of", first_waits)
    monkeypatch.setattr(engine, "SearchThreads", partial(SearchThreads, threads=2, places=2))
    settings = Settings(data_dir=embedded_world(tmp_path), trusted_proxies=("127.0.0.1",), request_timeout=15.0)
    raw = b'{"query": "books"}'
    with served(create_app(settings)) as base, ThreadPoolExecutor(1) as callers:
        until_ready(base)
        # Two addresses of one network are one caller, as for quotas.
        slow = callers.submit(post, base, "/tool/find_shop", raw, x_forwarded_for="2001:db8::1")
        assert begun.wait(5)
        refused = post(base, "/tool/find_shop", raw, x_forwarded_for="2001:db8::2")
        results = [call(base, era, "find_shop", raw, x_forwarded_for="2001:db8::3").json["result"] for era in Era]
        answered = post(base, "/tool/find_shop", raw, x_forwarded_for=_OTHER)
        ends.set()
        assert (slow.result().status, answered.status) == (200, 200)
        assert slow.result().body == answered.body
    assert refused.summary == (
        503,
        "application/problem+json",
        problem(503, "overloaded", OverloadedError.default_detail),
    )
    assert refused.headers["retry-after"] == "1"
    for result in results:
        assert (result["isError"], [block["text"] for block in result["content"]]) == (True, [refused.body.decode()])
