"""A process that opens connections and sends nothing: `python -m tests.processes.load.silent PORT COUNT`.

It says so on its output when it has tried all, holds those that it has, opens others for those that are closed, and
ends with its input or after two minutes.
"""

import asyncio
import sys
from typing import Final

import uvloop

from service.server.connections import raise_descriptor_limit

_LONGEST_S: Final = 120.0
_AT_ONCE: Final = 50
_AGAIN_S: Final = 0.5


class Silent(asyncio.Protocol):
    def __init__(self) -> None:
        self.closed = False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio says
        self.closed = True


async def _hold(port: int, count: int) -> None:
    loop = asyncio.get_running_loop()
    reported = False
    while True:
        for _ in range(count // _AT_ONCE):
            opening = (loop.create_connection(Silent, "127.0.0.1", port) for _ in range(_AT_ONCE))
            await asyncio.gather(*opening, return_exceptions=True)
        if not reported:
            print("tried", flush=True)  # noqa: T201 - for the process that started it
            reported = True
        count = _AT_ONCE
        await asyncio.sleep(_AGAIN_S)


async def main() -> None:
    port, count = map(int, sys.argv[1:])
    raise_descriptor_limit()
    holding = asyncio.create_task(_hold(port, count))
    ended = asyncio.to_thread(sys.stdin.read)
    try:
        async with asyncio.timeout(_LONGEST_S):
            await ended
    finally:
        holding.cancel()


if __name__ == "__main__":
    uvloop.run(main())
