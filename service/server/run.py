"""Serves the application in one process or several, and stops without breaking off requests.

On SIGTERM the process is no longer ready and closes each connection after its next response. After the drain time, in
which load balancers choose other processes, it accepts no new connections and completes the requests in flight. SIGINT
skips the drain time.

A listener that systemd holds stays open while the service is restarted: who connects meanwhile waits for the next
process, which accepts when its index is open.
"""

import asyncio
import ctypes
import gc
import json
import os
import signal
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from socket import SO_RCVBUF, SOL_SOCKET, socket
from tempfile import TemporaryDirectory
from threading import Thread
from types import FrameType
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from service.app import create_app
from service.calls.live_data import OPENING_S
from service.observability.logs import configure_logging_from
from service.parts import running
from service.runtime.caller import Proxies
from service.server.connections import ConnectionBounds, bounds_within, raise_descriptor_limit
from service.server.http_server import HttpProtocol, ServerConfig
from service.settings.service import Settings
from shop_directory.settings.reading import PREFIX

# The folder of the metrics that workers share; the metrics library reads the variable when it is imported.
METRICS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"

_STARTUP_FAILURE: Final = 3
# Of systemd (sd_listen_fds): the first descriptor that it passes on.
_FIRST_PASSED: Final = 3
_POLL_SECONDS: Final = 0.1
# How long workers still accept what has connected, after nobody can connect any more.
_LAST_SECONDS: Final = 0.4
# Of Linux, for which Python has no name: the packets of a socket that a program admits.
_SO_ATTACH_FILTER: Final = 26
_ADMIT_NOTHING: Final = struct.pack("HBBI", 0x06, 0, 0, 0)
# At most so much of a connection waits in the system, and is read at once.
_READ_BYTES: Final = 64 * 1024
# Dozens of waiting requests hold more live objects than the interpreter's own threshold of 700.
_GC_THRESHOLD: Final = 10_000
# How long a request may wait for a thread that opens the next generation; the interpreter's own interval is 5 ms.
_SWITCH_SECONDS: Final = 0.0005
# How often a person's service is asked whether it is ready, and how long for an answer.
_READY_SECONDS: Final = 0.5
_READY_TIMEOUT_SECONDS: Final = 5.0
_SERVES: Final = "Shop Directory serves at"
_HINTS: Final = """
Things to try:
  {url}/ in a browser: type lumn, or look at {url}/docs
  curl '{url}/suggest?q=lumn'
  curl {url}/tool/list_categories -H 'content-type: application/json' -d '{{}}'
  an MCP client at {url}/mcp
"""


def inherited_listener() -> socket | None:
    """The listener that systemd passes to this process by a socket unit of one TCP address; None without one."""
    return socket(fileno=_FIRST_PASSED) if os.environ.get("LISTEN_PID") == str(os.getpid()) else None


def serve_until_signal(settings: Settings, inherited: socket | None, *, hints: bool, as_json: bool) -> None:
    """Serve in this process, or in several; exits with 3 when those can't start."""
    announce = partial(_announce, hints=hints, as_json=as_json)
    if settings.workers > 1:
        _serve_with_workers(settings, inherited, announce)
        return
    app = drained_on_sigterm(create_app(settings), settings.drain_seconds, waits=inherited is not None)
    _Server(_server_config(app, settings), announce).run(None if inherited is None else [inherited])


def _serve_with_workers(settings: Settings, inherited: socket | None, announce: Callable[[Any], None]) -> None:
    """Serve in processes that are restarted when they die, until a signal."""
    with TemporaryDirectory(prefix="shop-directory-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        # The workers read their settings from the environment, so the values of command-line options are put there.
        for name in ("host", "port", "engine", "data_dir", "workers"):
            os.environ[f"{PREFIX}{name.upper()}"] = str(getattr(settings, name))
        config = _server_config("service.server.run:worker", settings)
        listener = inherited or config.bind_socket()
        _bound_reads(listener)
        # Before the first worker runs, so that early clients wait for it instead of being refused.
        listener.listen(config.backlog)
        announce(listener)
        supervisor = _Workers(config, listener, settings.drain_seconds, is_own=inherited is None)
        supervisor.run()
    if any(process.exitcode == _STARTUP_FAILURE for process in supervisor.processes):
        sys.exit(_STARTUP_FAILURE)


def _server_config(app: FastAPI | str, settings: Settings) -> ServerConfig:
    trusted = Proxies(settings.trusted_proxies, settings.forwarding_header)
    wanted = ConnectionBounds(settings.max_connections, settings.max_connections_per_address, trusted)
    return ServerConfig(
        app,
        settings.host,
        settings.port,
        workers=settings.workers,
        hsts_seconds=settings.hsts_seconds,
        # Of each process: workers inherit the descriptor limit.
        bounds=bounds_within(raise_descriptor_limit(), wanted),
    )


def worker() -> FastAPI:
    """The application of one worker, with the settings of its environment."""
    settings = Settings.load()
    configure_logging_from(settings)
    waits = os.environ.get("LISTEN_PID") == str(os.getppid())
    return drained_on_sigterm(create_app(settings), settings.drain_seconds, waits=waits)


def drained_on_sigterm(app: FastAPI, seconds: float, *, waits: bool) -> FastAPI:
    """Let the application serve, not ready, for so many seconds after SIGTERM; the signal sets its `state.draining`.

    If it `waits`, it starts to serve when its index is open, or after `OPENING_S`.
    """
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


class _Workers(Multiprocess):
    """Workers that drain on SIGTERM; SIGINT and a second signal skip the drain time.

    Workers share one listener. What waits there when the last of them ends would be reset, so nobody can connect any
    more shortly before they stop accepting; but what waits at one that is not our own waits for the next process.
    """

    def __init__(self, config: uvicorn.Config, listener: socket, drain_seconds: float, *, is_own: bool) -> None:
        super().__init__(config, [listener])
        self._listener = listener
        self._is_own = is_own
        self._drain_seconds = drain_seconds
        self._closing_at = float("inf")

    def terminate_all(self) -> None:
        if self._is_own and self._drain_seconds < _LAST_SECONDS:
            _ignore_new_connections(self._listener)
            time.sleep(_LAST_SECONDS)
        elif self._is_own:
            self._closing_at = time.monotonic() + self._drain_seconds - _LAST_SECONDS
        super().terminate_all()

    def handle_int(self) -> None:
        """Stop the workers, which get SIGTERM first, and then SIGINT so that they do not drain."""
        super().handle_int()
        self.signal_queue.append(signal.SIGINT)

    def join_all(self) -> None:
        """Wait for the workers; pass on as SIGINT what is signalled meanwhile."""
        while living := [worker for worker in self.processes if worker.process.is_alive()]:
            if time.monotonic() >= self._closing_at:
                self._closing_at = float("inf")
                _ignore_new_connections(self._listener)
            if self.signal_queue:
                self.signal_queue.clear()
                for worker in living:
                    if worker.pid is not None:
                        os.kill(worker.pid, signal.SIGINT)
            living[0].process.join(_POLL_SECONDS)


class _Server(uvicorn.Server):
    """A server that announces its URL, and exits with 0 after SIGTERM."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[Any], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        for server in self.servers if self.started else ():
            for listener in server.sockets:
                _bound_reads(listener)
        if self.started:
            self._announce(self.servers[0].sockets[0])

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Accept what has connected, and stop: closing the listener would reset those connections."""
        loop = asyncio.get_running_loop()
        protocol = partial(HttpProtocol, self.config, self.server_state, self.lifespan.state)
        waiting = [connected for server in self.servers for connected in _accept_waiting(server)]
        for connected in waiting:
            await loop.connect_accepted_socket(protocol, connected)
        # What the event loop had accepted itself is known to it one tick later.
        await asyncio.sleep(0)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, and do not raise SIGTERM again afterwards: a requested stop is not a failure."""
        super().handle_exit(sig, frame)
        if sig == signal.SIGTERM:
            self._captured_signals.clear()


def _ignore_new_connections(listener: socket) -> None:
    """Let the system drop what asks for a connection; connections that are made already are accepted as before.

    Callers that ask meanwhile ask again after a second, and are refused once the listener is closed. Other systems than
    Linux go on connecting.
    """
    if sys.platform == "linux":
        program = ctypes.create_string_buffer(_ADMIT_NOTHING)
        listener.setsockopt(SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))


def _accept_waiting(server: asyncio.Server) -> list[socket]:
    """Close a server's listeners; returns the connections that waited there."""
    waiting = []
    for listener in server.sockets:
        with socket(fileno=os.dup(listener.fileno())) as accepting, suppress(BlockingIOError):
            accepting.setblocking(False)
            while True:
                waiting.append(accepting.accept()[0])
    server.close()
    return waiting


def _bound_reads(listener: Any) -> None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    # Its connections inherit it, and the system doubles it.
    listener.setsockopt(SOL_SOCKET, SO_RCVBUF, _READ_BYTES // 2)


def _announce(listener: Any, *, hints: bool, as_json: bool) -> None:  # noqa: ANN401 - a socket, or asyncio's wrapper of one
    """Print the URL; with hints, for people, when the service is ready, and until then what it waits for."""
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    if hints and not as_json:
        Thread(target=_announce_when_ready, args=(host, port, url), daemon=True).start()
    else:
        print(json.dumps({"url": url}) if as_json else f"{_SERVES} {url}", flush=True)


def _announce_when_ready(host: str, port: int, url: str) -> None:
    former = None
    while (reason := _unready(host, port)) is not None:
        if reason != former:
            print(f"Listening at {url}, not ready yet: {reason}", flush=True)
        former = reason
        time.sleep(_READY_SECONDS)
    print(f"{_SERVES} {url}", _HINTS.format(url=url), sep="\n", flush=True)


def _unready(host: str, port: int) -> str | None:
    """Why the service is not ready, in the words of /ready; None if it is."""
    connection = HTTPConnection(host, port, timeout=_READY_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/ready")
        answer = connection.getresponse()
        return None if answer.status == HTTPStatus.OK else str(json.load(answer)["detail"])
    except (OSError, HTTPException, ValueError, KeyError):
        return "it is starting."
    finally:
        connection.close()
