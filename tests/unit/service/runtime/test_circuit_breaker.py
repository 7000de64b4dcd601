"""The circuit breaker: open when half of enough recent calls failed, one probe a second, closed by the first answer."""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from service.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from service.runtime.telemetry import Metrics
from tests.rules.limits.clocks import HandClock


class Unavailable(Exception):  # noqa: N818
    """The part does not answer."""


class NoSuchThing(Exception):  # noqa: N818
    """An answer, if not a welcome one."""


class States(Metrics):
    """Records the states of circuits."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str]] = []

    def circuit(self, part: str, state: str) -> None:
        """Record it."""
        self.recorded.append((part, state))


ENOUGH: Final = 10


class World:
    """A circuit, its part and its clock."""

    def __init__(self) -> None:
        self.clock, self.states = HandClock(), States()
        self.circuit = CircuitBreaker("part", (Unavailable,), self.states, self.clock)
        self.asked = 0

    def part(self, outcome: Exception | None = None) -> Callable[[], Awaitable[str]]:
        """What asks the part, which answers or fails."""

        async def ask() -> str:
            self.asked += 1
            if outcome is not None:
                raise outcome
            return "answer"

        return ask

    async def call(self, outcome: Exception | None = None) -> str:
        """One call's end, in a word."""
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


async def test_answers_and_refusals_of_a_part_that_works_leave_the_circuit_closed() -> None:
    world = World()
    results = [await world.call(NoSuchThing() if turn % 2 else None) for turn in range(100)]
    assert set(results) == {"answer", "NoSuchThing"}
    assert (world.asked, world.states.recorded) == (100, [])


async def test_a_few_failures_open_no_breaker() -> None:
    world = World()
    assert [await world.call(Unavailable()) for _ in range(ENOUGH - 1)] == ["Unavailable"] * (ENOUGH - 1)
    assert world.states.recorded == []


async def test_fewer_failures_than_answers_open_no_breaker() -> None:
    world = World()
    for _ in range(50):
        await world.call(Unavailable())
        await world.call()
        await world.call()
        world.clock.pass_seconds(0.001)
    assert world.states.recorded == []
    assert world.asked == 150


async def test_an_open_breaker_lets_no_call_through() -> None:
    world = await opened()
    assert [await world.call() for _ in range(5)] == ["open"] * 5
    assert (world.asked, world.states.recorded) == (ENOUGH, [("part", "open")])


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


async def test_what_failed_long_ago_is_forgotten() -> None:
    world = World()
    for _ in range(ENOUGH - 1):
        await world.call(Unavailable())
    world.clock.pass_seconds(6.0)
    assert await world.call(Unavailable()) == "Unavailable"
    assert world.states.recorded == []
