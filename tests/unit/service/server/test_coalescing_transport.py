"""What one response writes in an event-loop tick goes out in one write, in order, and nothing is held back."""

import asyncio

from service.server.connections import CoalescingTransport


class Noted(asyncio.Transport):
    """A transport that only notes what reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def writing() -> tuple[CoalescingTransport, Noted]:
    noted = Noted()
    return CoalescingTransport(asyncio.get_running_loop(), noted), noted


async def test_head_and_body_are_one_write_once_the_answer_is_whole() -> None:
    coalescing, noted = writing()
    coalescing.write(b"head")
    coalescing.write(b"body")
    assert noted.writes == []
    coalescing.flush()
    coalescing.flush()
    assert noted.writes == [b"headbody"]


async def test_a_part_of_a_longer_response_is_written_at_the_end_of_its_tick() -> None:
    coalescing, noted = writing()
    for part in (b"head", b"first part", b"second part"):
        coalescing.write(part)
        await asyncio.sleep(0)
    assert noted.writes == [b"head", b"first part", b"second part"]


async def test_much_is_not_held() -> None:
    coalescing, noted = writing()
    coalescing.write(b"head")
    coalescing.write(b"-" * 100_000)
    assert [len(data) for data in noted.writes] == [100_004]


async def test_a_connection_is_closed_behind_what_was_written() -> None:
    coalescing, noted = writing()
    coalescing.write(b"last")
    coalescing.close()
    await asyncio.sleep(0)
    assert (noted.writes, coalescing.is_closing()) == ([b"last"], True)


async def test_nothing_is_written_to_a_connection_that_has_ended() -> None:
    coalescing, noted = writing()
    coalescing.write(b"too late")
    noted.close()
    await asyncio.sleep(0)
    assert noted.writes == []
