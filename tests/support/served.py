"""The application on a loopback port, and requests to it by nothing but the standard library."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp

from service.server.http_server import ServerConfig
from service.settings.service import Settings
from shop_directory.typeahead.compiled import compile_kernel

_START_BOUND_S: Final = 20.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        return json.loads(self.body)

    @property
    def summary(self) -> tuple[int, str | None, Any]:
        return self.status, self.headers.get("content-type"), self.json


class _Server(uvicorn.Server):
    """Ends when it is told to; uvicorn itself looks for that every tenth of a second, and waits for another one."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told.set)

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        ticks = count()
        while not await self.on_tick(next(ticks)):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 0.1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - as uvicorn has it
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)  # in which idle connections are lost
        await asyncio.wait_for(self._wait_tasks_to_complete(), self.config.timeout_graceful_shutdown)
        await self.lifespan.shutdown()


@contextmanager
def served(app: ASGIApp, *, hsts_seconds: int = 0, port: int = 0) -> Iterator[str]:
    """Serve an application, at a free port if none is given; yields its base URL."""
    # What a process does once, in seconds on a busy machine: the first requests of a test are not about that.
    compile_kernel()
    server = _Server(ServerConfig(app, "127.0.0.1", port, hsts_seconds=hsts_seconds))
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + _START_BOUND_S
    while not server.started:
        assert thread.is_alive(), "the server ended before it had started"
        assert time.monotonic() < deadline, "the server did not start in time"
        time.sleep(0.002)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.end()
        thread.join()


def settings_in(folder: Path, **given: Any) -> Settings:  # noqa: ANN401 - any setting
    """Settings with the service's own files in a folder, and time enough for a busy machine."""
    own = {"token_file": folder / "tokens.sqlite", "reports_file": folder / "reports.sqlite", "request_timeout": 10.0}
    return Settings(**{**own, **given})


def until(read: Callable[[], T], is_wanted: Callable[[T], object], seconds: float, pause: float = 0.05) -> T:
    """Read until what is read is wanted, and return it; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not is_wanted(found := read()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {found}"
        time.sleep(pause)
    return found


def until_ready(base: str) -> None:
    """Wait until the service can answer: it may have to fetch and open files first."""
    until(lambda: get(base, "/ready"), lambda reply: reply.status == HTTPStatus.OK, _START_BOUND_S)


def ask(
    base: str, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    connection = HTTPConnection(urlsplit(base).netloc, timeout=10)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        connection.close()


def get(base: str, path: str, **headers: str) -> Reply:
    """A GET; header names with _ for -."""
    return ask(base, "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def post(base: str, path: str, body: bytes | Mapping[str, Any], **headers: str) -> Reply:
    """A POST of JSON; header names with _ for -."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(base, "POST", path, raw, {"content-type": "application/json", "accept": "application/json"} | given)
