"""Responses of one event-loop tick are written together and in order, and logged when all are written."""

import asyncio

from service.suggest.fast_path import BatchedWriter


class Wire(asyncio.Transport):
    """Collects what is written."""

    def __init__(self, out: list[bytes]) -> None:
        super().__init__()
        self.out = out
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.out.append(bytes(data))


async def test_responses_wait_for_the_end_of_the_tick_and_are_logged_when_all_are_written() -> None:
    out: list[bytes] = []
    logged: list[tuple[int, list[str]]] = []
    writer = BatchedWriter[str](lambda calls: logged.append((len(out), list(calls))))
    first, second = Wire(out), Wire(out)
    loop = asyncio.get_running_loop()
    writer.send(loop, first, b"one", "1")
    writer.send(loop, second, b"two", "2")
    writer.send(loop, first, b"three", "3")
    seen: list[bytes] = []
    # A task that starts later runs later.
    loop.call_soon(lambda: seen.extend(out))
    assert out == []
    await asyncio.sleep(0)
    assert out == seen == [b"one", b"two", b"three"]
    assert logged == [(3, ["1", "2", "3"])]


async def test_what_a_flush_has_sent_is_not_sent_again_at_the_end_of_the_tick() -> None:
    out: list[bytes] = []
    logged: list[list[str]] = []
    writer = BatchedWriter[str](lambda calls: logged.append(list(calls)))
    writer.send(asyncio.get_running_loop(), Wire(out), b"one", "1")
    writer.flush()
    assert (out, logged) == ([b"one"], [["1"]])
    writer.flush()
    await asyncio.sleep(0)
    assert (out, logged) == ([b"one"], [["1"]])


async def test_nothing_is_written_to_a_connection_that_closes_and_its_call_is_logged() -> None:
    out: list[bytes] = []
    logged: list[list[str]] = []
    writer = BatchedWriter[str](lambda calls: logged.append(list(calls)))
    loop, leaving, staying = asyncio.get_running_loop(), Wire(out), Wire(out)
    writer.send(loop, leaving, b"one", "1")
    writer.send(loop, staying, b"two", "2")
    leaving.closing = True
    await asyncio.sleep(0)
    assert (out, logged) == ([b"two"], [["1", "2"]])


async def test_no_more_than_64_responses_wait() -> None:
    out: list[bytes] = []
    writer = BatchedWriter[int](lambda calls: out.append(b"logged %d" % len(calls)))
    wire, loop = Wire(out), asyncio.get_running_loop()
    for number in range(63):
        writer.send(loop, wire, b"%d" % number, number)
    assert out == []
    writer.send(loop, wire, b"63", 63)
    assert out == [*(b"%d" % number for number in range(64)), b"logged 64"]
