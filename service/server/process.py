"""The application and the server of one process, which stops without breaking off requests.

On SIGTERM the process is no longer ready and closes each connection after its next response. After the drain time, in
which load balancers choose other processes, it accepts no new connections and completes the requests in flight. SIGINT
skips the drain time. Clients of a listener that systemd holds wait until the next process has opened its index.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from socket import SO_RCVBUF, SOL_SOCKET, socket
from types import FrameType
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from service.app import create_app
from service.calls.live_data import OPENING_S
from service.parts import running
from service.runtime.caller import Proxies
from service.server.connections import ConnectionBounds, bounds_within, raise_descriptor_limit
from service.server.http_server import HttpProtocol, ServerConfig
from service.server.sharing import Acceptor, WorkerTable, accept_waiting
from service.settings.service import Settings

# At most so much of a connection waits in the system, and is read at once.
_READ_BYTES: Final = 64 * 1024
# Dozens of waiting requests hold more live objects than the interpreter's own threshold of 700.
_GC_THRESHOLD: Final = 10_000
# How long a request may wait for a thread that opens the next generation; the interpreter's own interval is 5 ms.
_SWITCH_SECONDS: Final = 0.0005


def server_config(settings: Settings, *, waits: bool) -> ServerConfig:
    """The application of one process and how it is served.

    If it `waits`, it starts to serve when its index is open, or after `OPENING_S`.
    """
    trusted = Proxies(settings.trusted_proxies, settings.forwarding_header)
    wanted = ConnectionBounds(settings.max_connections, settings.max_connections_per_address, trusted)
    return ServerConfig(
        drained_on_sigterm(create_app(settings), settings.drain_seconds, waits=waits),
        settings.host,
        settings.port,
        hsts_seconds=settings.hsts_seconds,
        bounds=bounds_within(raise_descriptor_limit(), wanted),
    )


def drained_on_sigterm(app: FastAPI, seconds: float, *, waits: bool) -> FastAPI:
    """Let the application serve, not ready, for so many seconds after SIGTERM; the signal sets its `state.draining`."""
    lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def draining_lifespan(app: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - as Starlette declares it
        async with lifespan(app) as state:
            if waits:
                with suppress(TimeoutError):
                    await asyncio.wait_for(app.state.open_index(), OPENING_S)
            gc.set_threshold(_GC_THRESHOLD)
            sys.setswitchinterval(_SWITCH_SECONDS)
            _freeze_objects()
            with _draining(app.state.draining, seconds):
                async with running(_load_the_rest(app)):
                    yield state

    app.router.lifespan_context = draining_lifespan
    return app


async def _load_the_rest(app: FastAPI) -> None:
    """Load the MCP SDK once the index is open, for which the first requests wait, and not during its opening."""
    await app.state.open_index()
    with suppress(Exception):  # each MCP request reports it
        await app.state.open_mcp()
    _freeze_objects()


def _freeze_objects() -> None:
    """Exempt the objects that exist now, which stay, from collections: each would stop all requests for 0.1 s."""
    gc.collect()
    gc.freeze()


@contextmanager
def _draining(draining: asyncio.Event, seconds: float) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    server_handler = signal.getsignal(signal.SIGTERM)

    def end(signal_number: int, frame: FrameType | None) -> None:
        if callable(server_handler):
            server_handler(signal_number, frame)

    def begin(signal_number: int, frame: FrameType | None) -> None:
        if draining.is_set():
            # A second signal skips the drain time.
            end(signal_number, frame)
            return
        draining.set()
        loop.call_soon_threadsafe(loop.call_later, seconds, end, signal_number, None)

    signal.signal(signal.SIGTERM, begin)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, server_handler)


class Server(uvicorn.Server):
    """A server that announces its listener, and exits with 0 after SIGTERM."""

    config: ServerConfig

    def __init__(self, config: ServerConfig, announce: Callable[[Any], None] | None = None) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start the application, listen, and announce it."""
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for listener in server.sockets:
                bound_reads(listener)
        if self.started and self._announce is not None:
            self._announce(self._listener())

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Accept the waiting connections, and stop: closing the listener would reset them."""
        for connected in self._stop_accepting():
            await self._serve_connection(connected)
        # What the event loop had accepted itself is known to it one tick later.
        await asyncio.sleep(0)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, and do not raise SIGTERM again afterwards: a requested stop is not a failure."""
        super().handle_exit(sig, frame)
        if sig == signal.SIGTERM:
            self._captured_signals.clear()

    def _listener(self) -> Any:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
        return self.servers[0].sockets[0]

    def _stop_accepting(self) -> list[socket]:
        """Close the listeners of this process; returns the connections that waited there."""
        waiting = [
            connected
            for server in self.servers
            for listener in server.sockets
            for connected in accept_waiting(listener.fileno())
        ]
        for server in self.servers:
            server.close()
        return waiting

    async def _serve_connection(self, connected: socket) -> None:
        protocol = partial(HttpProtocol, self.config, self.server_state, self.lifespan.state)
        await asyncio.get_running_loop().connect_accepted_socket(protocol, connected)


class WorkerServer(Server):
    """The server of one of several workers, which accept from one listener."""

    def __init__(
        self,
        config: ServerConfig,
        announce: Callable[[Any], None] | None,
        listener: socket,
        table: WorkerTable,
        number: int,
    ) -> None:
        super().__init__(config, announce)
        self._shared_listener = listener
        self._table = table
        self._number = number
        self._supervisor = os.getppid()

    async def startup(self, sockets: list[socket] | None = None) -> None:  # noqa: ARG002 - as uvicorn declares it
        """Start the application, then accept this worker's share of connections."""
        self._acceptor = Acceptor(self._shared_listener, self._table, self._number, self._serve_connection)
        self.config.connections.on_change = self._acceptor.count
        # It has none of the server's listeners.
        await super().startup([])
        self._table.tick(self._number)
        self._acceptor.start()

    async def on_tick(self, counter: int) -> bool:
        """Report that the event loop runs; stop when the supervisor has been killed."""
        self._table.tick(self._number)
        if os.getppid() != self._supervisor and not self.should_exit:
            signal.raise_signal(signal.SIGTERM)
            self._supervisor = os.getppid()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop, and leave further connections to the other workers."""
        # From here on the supervisor waits for its end.
        self._table.end(self._number)
        await super().shutdown(sockets)

    def _listener(self) -> socket:
        return self._shared_listener

    def _stop_accepting(self) -> list[socket]:
        return self._acceptor.stop()


def bound_reads(listener: Any) -> None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    """Bound what waits in the system to be read of each connection."""
    # Its connections inherit it, and the system doubles it.
    listener.setsockopt(SOL_SOCKET, SO_RCVBUF, _READ_BYTES // 2)
