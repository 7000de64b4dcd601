"""A relay to a server that counts what it is asked, is late with the answers, and notes who does not wait."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.support.loopback import loop_in_thread


class Exchanges:
    """One connection: whether it is waiting for an answer, and until when that is held back."""

    def __init__(self) -> None:
        self.waiting = False
        self.not_before = 0.0


class CountingRelay:
    """Passes requests on at once, and answers when they are due: `delay` seconds later, if the line holds `only`.

    `asked` has the request line of each request; `left` connections ended while an answer was awaited.
    """

    def __init__(self, url: str) -> None:
        """Relay to the server of a URL with a port; `url` is the same at another port once it listens."""
        self._parts = urlsplit(url)
        self.asked: list[str] = []
        self.left = 0
        self.delay = 0.0
        self.only = ""
        self.url = ""
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = self._parts._replace(netloc=f"127.0.0.1:{port}").geturl()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, caller: asyncio.StreamReader, to_caller: asyncio.StreamWriter) -> None:
        exchanges = Exchanges()
        engine, to_engine = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        answers = asyncio.create_task(self._answers(engine, to_caller, exchanges))
        try:
            with suppress(ConnectionError):
                while some := await caller.read(65_536):
                    self._note(some, exchanges)
                    to_engine.write(some)
            self.left += exchanges.waiting
        finally:
            answers.cancel()
            to_engine.transport.abort()
            to_caller.transport.abort()

    def _note(self, some: bytes, exchanges: Exchanges) -> None:
        """A client that does not pipeline sends something new only when it has been answered."""
        if exchanges.waiting:
            return
        line = some.split(b"\r\n", 1)[0].decode()
        self.asked.append(line)
        exchanges.waiting = True
        exchanges.not_before = time.monotonic() + (self.delay if self.only in line else 0.0)

    async def _answers(
        self, engine: asyncio.StreamReader, to_caller: asyncio.StreamWriter, exchanges: Exchanges
    ) -> None:
        with suppress(ConnectionError):
            while some := await engine.read(65_536):
                await asyncio.sleep(max(0.0, exchanges.not_before - time.monotonic()))
                exchanges.waiting = False
                to_caller.write(some)
                await to_caller.drain()
        to_caller.close()


@contextmanager
def counting_relay(url: str) -> Iterator[CountingRelay]:
    relay = CountingRelay(url)
    with loop_in_thread() as loop:
        try:
            asyncio.run_coroutine_threadsafe(relay.listen(), loop).result(10.0)
            yield relay
        finally:
            asyncio.run_coroutine_threadsafe(relay.close(), loop).result(10.0)
