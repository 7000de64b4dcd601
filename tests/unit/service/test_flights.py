"""Single flight: callers who want the same share one look-up."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from service.flights import Flights
from service.under_way import begun, current, working_on


class Kitchen:
    """Look-ups that end when they are told to; counts those that began and those that were given up."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun = 0
        self.given_up = 0
        self.fails = False

    async def cook(self) -> int:
        self.begun += 1
        mine = self.begun
        if (request := current()) is not None:
            request.engine_calls += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.fails:
            raise LookupError("burnt")
        return mine


async def asked(flights: Flights[int], work: Callable[[], Awaitable[int]], count: int) -> list["asyncio.Task[int]"]:
    tasks = [asyncio.create_task(flights.share("soup", work)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_all_who_ask_at_the_same_time_share_one_look_up_and_later_ones_make_another() -> None:
    kitchen, flights = Kitchen(), Flights[int](5.0)
    tasks = await asked(flights, kitchen.cook, 5)
    kitchen.open.set()
    assert await asyncio.gather(*tasks) == [1, 1, 1, 1, 1]
    assert await flights.share("soup", kitchen.cook) == 2


async def test_a_failure_is_everybodys_and_is_not_kept() -> None:
    kitchen, flights = Kitchen(), Flights[int](5.0)
    kitchen.fails = True
    tasks = await asked(flights, kitchen.cook, 3)
    kitchen.open.set()
    assert [str(found) for found in await asyncio.gather(*tasks, return_exceptions=True)] == ["burnt"] * 3
    kitchen.fails = False
    assert await flights.share("soup", kitchen.cook) == 2


async def test_who_leaves_takes_nothing_from_the_others_and_the_last_one_ends_it() -> None:
    kitchen, flights = Kitchen(), Flights[int](5.0)
    first, second, third = await asked(flights, kitchen.cook, 3)
    first.cancel()
    await asyncio.wait([first])
    assert kitchen.given_up == 0
    kitchen.open.set()
    assert await second == await third == 1
    kitchen.open.clear()
    left = await asked(flights, kitchen.cook, 2)
    for task in left:
        task.cancel()
    await asyncio.wait(left)
    await asyncio.sleep(0)
    assert (kitchen.begun, kitchen.given_up) == (2, 1)


async def test_who_comes_after_all_have_left_begins_anew() -> None:
    kitchen, flights = Kitchen(), Flights[int](5.0)
    (left,) = await asked(flights, kitchen.cook, 1)
    left.cancel()
    await asyncio.wait([left])
    (next_one,) = await asked(flights, kitchen.cook, 1)
    kitchen.open.set()
    assert await next_one == 2


async def test_the_calls_are_told_as_those_of_the_request_that_began_the_look_up() -> None:
    kitchen, flights = Kitchen(), Flights[int](5.0)
    kitchen.open.set()
    first, second = begun("first"), begun("second")

    async def ask() -> int:
        return await flights.share("soup", kitchen.cook)

    with working_on(first):
        one = asyncio.create_task(ask())
    with working_on(second):
        other = asyncio.create_task(ask())
    assert await one == await other == 1
    assert (first.engine_calls, second.engine_calls) == (1, 0)


async def test_a_look_up_has_its_own_deadline_and_not_the_first_callers() -> None:
    seen: list[float] = []

    async def look() -> int:
        request = current()
        assert request is not None
        seen.append(request.remaining())
        return 1

    with working_on(begun("hasty", 0.01)):
        assert await Flights[int](5.0).share("soup", look) == 1
    assert seen[0] == pytest.approx(5.0, abs=0.5)
