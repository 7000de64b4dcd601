"""Lines of calls: all of them, each once, in order, also with other writers and after an event loop has ended."""

import asyncio
import io
import json
import logging
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from service.runtime.telemetry import JsonStream
from tests.rules.limits.clocks import HandClock

# The lines are due 20 ms after the first of them, and timers of a loop run in their order, however late they are.
_LATER_S: Final = 0.03


def written(stream: io.StringIO) -> list[str]:
    """The events of all lines; each is an object with a timestamp."""
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert all(line["timestamp"].endswith("Z") for line in lines if "timestamp" in line)
    return [line["event"] for line in lines]


def warn(handler: JsonStream, words: str) -> None:
    handler.setFormatter(logging.Formatter('{"event":"%(message)s"}'))
    handler.handle(logging.makeLogRecord({"msg": words, "levelno": logging.WARNING}))


async def test_lines_of_calls_are_written_soon_and_together() -> None:
    stream = io.StringIO()
    handler = JsonStream(stream)
    for number in range(3):
        handler.call_lines(logging.INFO, "calls", [{"event": f"call {number}", "status": 200}])
    assert written(stream) == []
    await asyncio.sleep(_LATER_S)
    assert written(stream) == ["call 0", "call 1", "call 2"]
    first = json.loads(stream.getvalue().splitlines()[0])
    assert {name: value for name, value in first.items() if name != "timestamp"} == {
        "event": "call 0", "status": 200, "level": "info", "logger": "calls",
    }  # fmt: skip


async def test_a_hundred_lines_are_not_held_back_and_none_of_them_comes_twice() -> None:
    stream = io.StringIO()
    handler = JsonStream(stream)
    for number in range(250):
        handler.call_lines(logging.INFO, "calls", [{"event": str(number)}])
    # Nothing else has had a turn meanwhile.
    assert written(stream) == [str(number) for number in range(200)]
    await asyncio.sleep(_LATER_S)
    assert written(stream) == [str(number) for number in range(250)]


async def test_another_line_comes_behind_those_that_wait() -> None:
    stream = io.StringIO()
    handler = JsonStream(stream)
    handler.call_lines(logging.INFO, "calls", [{"event": "first"}])
    warn(handler, "second")
    handler.call_lines(logging.INFO, "calls", [{"event": "third"}])
    await asyncio.sleep(_LATER_S)
    assert written(stream) == ["first", "second", "third"]


def test_without_an_event_loop_a_line_is_written_immediately() -> None:
    stream = io.StringIO()
    JsonStream(stream).call_lines(logging.INFO, "calls", [{"event": "first"}])
    assert written(stream) == ["first"]


def test_a_loop_that_ended_holds_nothing_back() -> None:
    stream = io.StringIO()
    handler = JsonStream(stream)

    clock = HandClock()

    class HandLoop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return clock()

    async def call(name: str, seconds: float) -> None:
        handler.call_lines(logging.INFO, "calls", [{"event": name}])
        clock.pass_seconds(seconds)
        await asyncio.sleep(0)

    for name, seconds in (("first", 0.0), ("second", 0.1)):
        with asyncio.Runner(loop_factory=HandLoop) as loop:
            loop.run(call(name, seconds))
        assert written(stream) == []
    with asyncio.Runner(loop_factory=HandLoop) as loop:
        loop.run(call("third", 0.1))
    assert written(stream) == ["first", "second", "third"]


async def test_no_line_is_lost_or_doubled_between_threads() -> None:
    stream = io.StringIO()
    handler = JsonStream(stream)

    def others() -> None:
        for number in range(2_000):
            warn(handler, f"other {number}")

    thread = threading.Thread(target=others)
    thread.start()
    for number in range(2_000):
        handler.call_lines(logging.INFO, "calls", [{"event": f"call {number}"}])
        if not number % 100:
            await asyncio.sleep(0)
    thread.join()
    await asyncio.sleep(_LATER_S)
    found = written(stream)
    assert [event for event in found if event.startswith("call")] == [f"call {number}" for number in range(2_000)]
    assert len(found) == 4_000


async def test_a_stream_that_fails_ends_no_call(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    handler = JsonStream(stream)
    stream.close()
    handler.call_lines(logging.INFO, "calls", [{"event": "first"}])
    await asyncio.sleep(_LATER_S)
    assert "call lines could not be written" in capsys.readouterr().err


async def test_a_full_disk_ends_no_call(capsys: pytest.CaptureFixture[str]) -> None:
    called = 0
    # As standard error is opened: what can't be written stays in its buffer, and fails again when that is flushed.
    with suppress(OSError), Path("/dev/full").open("w", buffering=1, encoding="utf-8") as full:
        handler = JsonStream(full)
        for lines in (1, 100):
            handler.call_lines(logging.INFO, "calls", [{"event": "lost"}] * lines)
            await asyncio.sleep(_LATER_S)
            called += lines
    assert (called, capsys.readouterr().err.count("call lines could not be written")) == (101, 2)
