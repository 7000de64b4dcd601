"""A relay in front of a server of this machine, in a thread of its own, which can be slow.

The bytes are not changed; what is late is late by as much on each of the two ways.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from tests.rules.limits.relay import Relay
from tests.support.loopback import loop_in_thread

_BOUND_S: Final = 10.0


class SlowRelay(Relay):
    """A relay whose answers take longer; `seconds` is how much."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.seconds = 0.0

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(65_536):
            await asyncio.sleep(self.seconds / 2)
            writer.write(some)
            await writer.drain()
        writer.close()


class Between:
    """The relay, for callers in other threads."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._relay = SlowRelay(url)
        self._run(self._relay.listen())
        # The same URL at another port.
        own, real = urlsplit(self._relay.url), urlsplit(url)
        self.url = real._replace(netloc=own.netloc).geturl()

    @contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        self._relay.seconds = seconds
        try:
            yield
        finally:
            self._relay.seconds = 0.0

    def close(self) -> None:
        self._run(self._relay.cut())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_BOUND_S)


@contextmanager
def relays_to(*urls: str) -> Iterator[tuple[Between, ...]]:
    """A relay to each server, all in one thread; cut at the end."""
    with loop_in_thread() as loop, ExitStack() as stack:
        relays = tuple(Between(url, loop) for url in urls)
        for relay in relays:
            stack.callback(relay.close)
        yield relays
