"""A TCP relay on loopback in front of a real server: it can fall silent, be cut, and come back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Relay:
    """Passes bytes on, to and fro, until it is switched."""

    def __init__(self, url: str) -> None:
        """Relay to the server of a redis:// URL; nothing listens yet."""
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 6379)
        self._path = parts.path
        self._server: asyncio.Server | None = None
        self._port = 0
        self._open = asyncio.Event()
        self._pumps: set[asyncio.Task[None]] = set()
        self.connections = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}{self._path}"

    async def listen(self) -> None:
        self._open.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def fall_silent(self) -> None:
        """Take connections and bytes, pass nothing on."""
        self._open.clear()

    def speak(self) -> None:
        self._open.set()

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
        for pump in tuple(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        far_writer: asyncio.StreamWriter | None = None
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer))
                group.create_task(self._pump(far_reader, writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._pumps.discard(task)
            for end in (writer, far_writer):
                if end is not None:
                    end.close()
                    with suppress(OSError):
                        await end.wait_closed()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(65_536):
            await self._open.wait()
            writer.write(some)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def relay_to(url: str) -> AsyncIterator[Relay]:
    relay = Relay(url)
    await relay.listen()
    try:
        yield relay
    finally:
        await relay.cut()
