"""The answers of one turn: written together and in order, told of when all are out, none to who has left."""

import asyncio

from service.rest.turn import Turn


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self, out: list[bytes]) -> None:
        super().__init__()
        self.out = out
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.out.append(bytes(data))


async def test_answers_wait_for_the_end_of_the_turn_and_are_told_of_when_all_are_out() -> None:
    out: list[bytes] = []
    told: list[tuple[int, list[str]]] = []
    turn = Turn[str](lambda calls: told.append((len(out), calls)))
    first, second = Wire(out), Wire(out)
    loop = asyncio.get_running_loop()
    turn.send(loop, first, b"one", "1")
    turn.send(loop, second, b"two", "2")
    turn.send(loop, first, b"three", "3")
    seen: list[bytes] = []
    # What is begun behind them runs behind them.
    loop.call_soon(lambda: seen.extend(out))
    assert out == []
    await asyncio.sleep(0)
    assert out == seen == [b"one", b"two", b"three"]
    assert told == [(3, ["1", "2", "3"])]


async def test_what_a_flush_has_sent_is_not_sent_again_at_the_end_of_the_turn() -> None:
    out: list[bytes] = []
    told: list[list[str]] = []
    turn = Turn[str](told.append)
    turn.send(asyncio.get_running_loop(), Wire(out), b"one", "1")
    turn.flush()
    assert (out, told) == ([b"one"], [["1"]])
    turn.flush()
    await asyncio.sleep(0)
    assert (out, told) == ([b"one"], [["1"]])


async def test_a_connection_that_closes_is_sent_nothing_and_its_call_is_told_of() -> None:
    out: list[bytes] = []
    told: list[list[str]] = []
    turn = Turn[str](told.append)
    loop, leaving, staying = asyncio.get_running_loop(), Wire(out), Wire(out)
    turn.send(loop, leaving, b"one", "1")
    turn.send(loop, staying, b"two", "2")
    leaving.closing = True
    await asyncio.sleep(0)
    assert (out, told) == ([b"two"], [["1", "2"]])


async def test_no_more_than_64_answers_wait() -> None:
    out: list[bytes] = []
    turn = Turn[int](lambda calls: out.append(b"told of %d" % len(calls)))
    wire, loop = Wire(out), asyncio.get_running_loop()
    for number in range(63):
        turn.send(loop, wire, b"%d" % number, number)
    assert out == []
    turn.send(loop, wire, b"63", 63)
    assert out == [*(b"%d" % number for number in range(64)), b"told of 64"]
