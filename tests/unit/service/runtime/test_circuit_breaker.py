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
    def __init__(self) -> None:
        self.recorded: list[tuple[str, str]] = []

    def circuit(self, part: str, state: str) -> None:
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
