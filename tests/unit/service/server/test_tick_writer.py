"""What is written in an event-loop tick goes out at its end, in order, one write a connection, and is logged then."""

import asyncio

from service.server.connections import TickTransport, TickWriter


class Wire(asyncio.Transport):
    def __init__(self, out: list[bytes]) -> None:
        super().__init__()
        self.out = out
        self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.out.append(bytes(data))

    def close(self) -> None:
        self.closed = True


class Queue:
    """A queue with what left it; a log line follows each flush."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.writer = TickWriter(lambda: self.out.append(b"logged"))

    def wire(self) -> Wire:
        return Wire(self.out)


async def test_responses_wait_for_the_end_of_the_tick_and_are_logged_when_all_are_written() -> None:
    queue = Queue()
    first, second = queue.wire(), queue.wire()
    queue.writer.write(first, b"one, ")
    queue.writer.write(second, b"two")
    queue.writer.write(first, b"three")
    seen: list[bytes] = []
    # A task that starts later runs later.
    asyncio.get_running_loop().call_soon(lambda: seen.extend(queue.out))
    assert queue.out == []
    await asyncio.sleep(0)
    assert queue.out == seen == [b"one, three", b"two", b"logged"]


async def test_a_part_of_a_longer_response_is_written_at_the_end_of_its_tick() -> None:
    queue = Queue()
    transport = TickTransport(queue.wire(), queue.writer)
    for part in (b"head", b"first part", b"second part"):
        transport.write(part)
        await asyncio.sleep(0)
    assert queue.out == [b"head", b"logged", b"first part", b"logged", b"second part", b"logged"]


async def test_nothing_is_written_to_a_connection_that_has_ended_and_the_rest_is_logged() -> None:
    queue = Queue()
    leaving, staying = queue.wire(), queue.wire()
    queue.writer.write(leaving, b"too late")
    queue.writer.write(staying, b"two")
    leaving.close()
    await asyncio.sleep(0)
    assert queue.out == [b"two", b"logged"]


async def test_a_connection_is_closed_behind_what_was_written() -> None:
    queue = Queue()
    wire = queue.wire()
    transport = TickTransport(wire, queue.writer)
    transport.write(b"last")
    transport.close()
    await asyncio.sleep(0)
    assert (queue.out, transport.is_closing(), wire.closed) == ([b"last", b"logged"], True, True)


async def test_no_more_than_64_writes_and_64_kibibytes_wait() -> None:
    queue = Queue()
    wire = queue.wire()
    for number in range(63):
        queue.writer.write(wire, b"%d " % number)
    assert queue.out == []
    queue.writer.write(wire, b"63")
    assert queue.out == [b" ".join(b"%d" % number for number in range(64)), b"logged"]
    queue.writer.write(wire, b"head")
    queue.writer.write(wire, b"-" * 100_000)
    assert [len(data) for data in queue.out[2:]] == [100_004, len(b"logged")]


async def test_a_connection_that_cannot_be_written_to_is_closed_and_costs_no_other_its_response() -> None:
    class Ended(Wire):
        def write(self, _data: bytes | bytearray | memoryview) -> None:
            raise RuntimeError("Cannot call write() after write_eof()")

        def abort(self) -> None:
            self.closed = True

    queue = Queue()
    ended = Ended(queue.out)
    queue.writer.write(ended, b"one")
    queue.writer.write(queue.wire(), b"two")
    queue.writer.flush()
    assert (queue.out, ended.closed) == ([b"two", b"logged"], True)
