"""What one answer writes in a turn of the event loop goes out in one write, in order, and nothing is kept back."""

import asyncio

from service.written_together import WrittenTogether


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


def writing() -> tuple[WrittenTogether, Noted]:
    noted = Noted()
    return WrittenTogether(asyncio.get_running_loop(), noted), noted


async def test_head_and_body_are_one_write_once_the_answer_is_whole() -> None:
    together, noted = writing()
    together.write(b"head")
    together.write(b"body")
    assert noted.writes == []
    together.flush()
    together.flush()
    assert noted.writes == [b"headbody"]


async def test_what_is_written_of_a_longer_answer_leaves_with_its_turn() -> None:
    together, noted = writing()
    for part in (b"head", b"first part", b"second part"):
        together.write(part)
        await asyncio.sleep(0)
    assert noted.writes == [b"head", b"first part", b"second part"]


async def test_much_is_not_held() -> None:
    together, noted = writing()
    together.write(b"head")
    together.write(b"-" * 100_000)
    assert [len(data) for data in noted.writes] == [100_004]


async def test_a_connection_is_closed_behind_what_was_written() -> None:
    together, noted = writing()
    together.write(b"last")
    together.close()
    await asyncio.sleep(0)
    assert (noted.writes, together.is_closing()) == ([b"last"], True)


async def test_nothing_is_written_to_a_connection_that_has_ended() -> None:
    together, noted = writing()
    together.write(b"too late")
    noted.close()
    await asyncio.sleep(0)
    assert noted.writes == []
