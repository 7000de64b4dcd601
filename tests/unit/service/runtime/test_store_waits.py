"""Waiting for a store: without a slot at the gate where it takes long, and with one time limit for a request."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.errors import OverloadedError
from service.http.middleware import Gate, GateSlot
from service.runtime.request_context import RequestContext, bind_request, new_request_context
from service.runtime.store_waits import store_answer, store_wait_budget, wait_for_store


@contextmanager
def a_request_inside(gate: Gate) -> Iterator[RequestContext]:
    request = new_request_context("r1", 10.0)
    slot = GateSlot(gate)
    request.suspended = slot.suspended
    with bind_request(request):
        yield request
    slot.leave()


async def test_a_request_that_waits_for_a_store_frees_its_slot() -> None:
    gate = Gate(1)
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def store() -> str:
        return await answer

    with a_request_inside(gate):
        waiting = asyncio.create_task(store_answer(store()))
        await asyncio.sleep(0)
        before = gate.in_flight
        await asyncio.sleep(0.1)
        other = GateSlot(gate)
        answer.set_result("found")
        found = await waiting
        # Both are inside: what was begun goes on, and only new ones are refused.
        assert (before, found, gate.in_flight) == (1, "found", 2)
        with pytest.raises(OverloadedError):
            gate.check()
        other.leave()
    assert gate.in_flight == 0


async def test_a_store_that_answers_as_always_costs_no_slot() -> None:
    gate = Gate(1)
    with a_request_inside(gate):
        waiting = asyncio.create_task(wait_for_store(asyncio.ensure_future(asyncio.sleep(0.02))))
        await asyncio.sleep(0.01)
        with pytest.raises(OverloadedError):
            gate.check()
        assert await waiting


async def test_only_so_many_requests_wait_outside() -> None:
    gate = Gate(1)
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with a_request_inside(gate):
        assert [gate.suspend() for _ in range(4)] == [True] * 4
        before = gate.in_flight
        waiting = asyncio.create_task(wait_for_store(never, 0.1))
        await asyncio.sleep(0.07)
        meanwhile = gate.in_flight
        assert not await waiting
        for _ in range(4):
            gate.resume()
    assert (meanwhile, gate.in_flight) == (before, 0)


async def test_the_time_limit_of_a_request_is_for_all_its_stores_together() -> None:
    slow = asyncio.ensure_future(asyncio.sleep(5))
    alone = store_wait_budget()
    with bind_request(new_request_context("r1", 10.0)) as request:
        first = store_wait_budget()
        assert not await wait_for_store(slow, 0.08)
        second = store_wait_budget()
        assert not await wait_for_store(slow, 0.3)
        third = store_wait_budget()
    slow.cancel()
    assert alone == first == 0.2
    assert 0.08 < second <= 0.12
    assert third == 0.05
    assert request.store_seconds == pytest.approx(0.38, abs=0.1)


async def test_a_caller_who_leaves_ends_the_question_to_the_store() -> None:
    asked = asyncio.Event()
    ended = asyncio.Event()

    async def store() -> None:
        asked.set()
        try:
            await asyncio.sleep(5)
        finally:
            ended.set()

    gate = Gate(1)
    with a_request_inside(gate):
        waiting = asyncio.create_task(store_answer(store()))
        await asked.wait()
        await asyncio.sleep(0.07)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(ended.wait(), 1)
        assert gate.in_flight == 1
    assert gate.in_flight == 0
