"""Waiting for a store: the circuit breaker, the gate's slots, and one time limit for a request."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Final

import pytest

from service.errors import OverloadedError
from service.http.gate import Gate, GateSlot
from service.runtime.store_waits import store_answer, store_wait_budget, wait_for_store
from shop_directory.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from shop_directory.runtime.metrics import Metrics
from shop_directory.runtime.request_context import RequestContext, bind_request, new_request_context
from tests.rules.limits.clocks import HandClock


class Unavailable(Exception):  # noqa: N818
    """The part does not answer."""


class NoSuchThing(Exception):  # noqa: N818
    """An answer, if not a welcome one."""


class States(Metrics):
    def __init__(self) -> None:
        self.recorded: list[tuple[str, str]] = []

    def circuit(self, part: str, state: str) -> None:
        self.recorded.append((part, state))


ENOUGH: Final = 10


class World:
    def __init__(self) -> None:
        self.clock, self.states = HandClock(), States()
        self.circuit = CircuitBreaker("part", (Unavailable,), self.states, self.clock)
        self.asked = 0

    def part(self, outcome: Exception | None = None) -> Callable[[], Awaitable[str]]:
        async def ask() -> str:
            self.asked += 1
            if outcome is not None:
                raise outcome
            return "answer"

        return ask

    async def call(self, outcome: Exception | None = None) -> str:
        try:
            return await self.circuit.call(self.part(outcome))
        except CircuitOpen:
            return "open"
        except (Unavailable, NoSuchThing) as error:
            return type(error).__name__


async def opened() -> World:
    world = World()
    for _ in range(ENOUGH):
        assert await world.call(Unavailable()) == "Unavailable"
    return world


FAILS, ANSWERS, REFUSES, LATER = "Unavailable", "answer", "NoSuchThing", "6 seconds later"


@pytest.mark.parametrize(
    "course",
    [
        [ANSWERS, REFUSES] * 50,
        [FAILS] * (ENOUGH - 1),
        [FAILS, ANSWERS, ANSWERS] * 50,
        [*[FAILS] * (ENOUGH - 1), LATER, FAILS],
    ],
    ids=["a part that works", "a few failures", "fewer failures than answers", "failures of long ago"],
)
async def test_what_opens_no_breaker(course: list[str]) -> None:
    world = World()
    outcomes = {FAILS: Unavailable(), ANSWERS: None, REFUSES: NoSuchThing()}
    for step in course:
        world.clock.pass_seconds(6.0 if step == LATER else 0.001)
        if step != LATER:
            assert await world.call(outcomes[step]) == step
    assert (world.asked, world.states.recorded) == (len(course) - course.count(LATER), [])


async def test_after_a_second_one_call_tries_and_the_others_do_not_wait_for_it() -> None:
    world = await opened()
    world.clock.pass_seconds(1.0)
    results: list[str] = []

    async def probing() -> str:
        results.append(await world.call())
        raise Unavailable

    with pytest.raises(Unavailable):
        await world.circuit.call(probing)
    assert results == ["open"]
    assert world.states.recorded == [("part", "open"), ("part", "half_open"), ("part", "open")]
    assert await world.call() == "open"


@pytest.mark.parametrize(("outcome", "end"), [(None, "answer"), (NoSuchThing(), "NoSuchThing")])
async def test_a_probe_that_is_answered_or_refused_closes_it(outcome: Exception | None, end: str) -> None:
    world = await opened()
    world.clock.pass_seconds(1.0)
    assert [await world.call(outcome) for _ in range(3)] == [end] * 3
    assert world.states.recorded[-1] == ("part", "closed")


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


async def test_the_time_limit_of_a_request_is_for_all_its_stores_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    monkeypatch.setattr("service.runtime.store_waits.time", SimpleNamespace(monotonic=clock))
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(seconds: float) -> bool:
        asyncio.get_running_loop().call_soon(clock.pass_seconds, seconds)
        return await wait_for_store(never, 0.001)

    alone = store_wait_budget()
    with bind_request(new_request_context("r1", 10.0)) as request:
        first = store_wait_budget()
        assert not await wait(0.08)
        second = store_wait_budget()
        assert not await wait(0.3)
        third = store_wait_budget()
    assert alone == first == 0.2
    assert second == pytest.approx(0.12)
    assert third == 0.05
    assert request.store_seconds == pytest.approx(0.38)


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
