"""A Redis that goes away just after it took a connection is away, and nothing else, however the event loop says so.

The faster event loop that the service runs on reports a connection that was closed between two steps by an error of
its own kind, which is no error of a network.
"""

import asyncio
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from typing import Final

import pytest
import uvloop

from service.redis.access import RedisAccess
from service.redis.connection import RedisConnection
from service.reports.protocol import ReportsUnavailable

_CALLS: Final = 16
_ROUNDS: Final = 100
# Seconds between taking a connection and cutting it: at some of them the client is between connecting and asking.
_PAUSES: Final = (0.0, 0.000_2, 0.000_5, 0.000_9, 0.001_4)


@pytest.fixture
def cutting() -> Iterator[str]:
    """The URL of a server that resets every connection soon after it took it."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        thread = threading.Thread(target=_cut_all, args=(listening,))
        thread.start()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def _cut_all(listening: socket.socket) -> None:
    for pause in cycle(_PAUSES):
        try:
            taken, _ = listening.accept()
        except OSError:
            return
        time.sleep(pause)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        taken.close()


@pytest.mark.rule("Q4", "E5")
def test_a_connection_that_is_cut_at_any_time_counts_as_an_unavailable_redis(cutting: str) -> None:
    async def ask_often() -> Counter[str]:
        connection = RedisConnection(
            RedisAccess(cutting), connections=_CALLS, timeout=1.0, purpose="reports", unavailable=ReportsUnavailable
        )
        answers: Counter[str] = Counter()

        async def ask() -> None:
            try:
                await connection.execute(lambda: connection.client.xlen("anything"), retry=True)
            except Exception as error:  # noqa: BLE001 - which kinds there are is the question
                answers[type(error).__name__] += 1

        for _ in range(_ROUNDS):
            await asyncio.gather(*(ask() for _ in range(_CALLS)))
        await connection.close()
        return answers

    assert uvloop.run(ask_often()) == {ReportsUnavailable.__name__: _ROUNDS * _CALLS}
