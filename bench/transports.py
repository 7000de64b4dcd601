"""The cost of each transport over one keep-alive connection, compared with a bare ASGI application.

The service runs in its own process on loopback, as a user would run it.
"""

import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.real.process import free_ports

_WARM_UP: Final = 200
_START_SECONDS: Final = 30.0
_MODERN: Final = "2026-07-28"
# Settings of a service that a bench may ask as often as it likes.
NO_QUOTA: Final = {
    "SHOP_DIRECTORY_QUOTA_ANONYMOUS": '{"reads": 1000000000, "suggest": 1000000000, "reports": 0}',
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request that is sent over and over."""

    method: str
    path: str
    body: str | None = None
    headers: Mapping[str, str] | None = None


def requests() -> dict[str, Request]:
    """The requests measured, by title."""
    json_body = {"content-type": "application/json"}
    call = {"name": "get_shop", "arguments": {"shop_domain": "shop_00000001"}}
    legacy = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    about = {
        "io.modelcontextprotocol/protocolVersion": _MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    modern = {**legacy, "params": {**call, "_meta": about}}
    accept = {**json_body, "accept": "application/json, text/event-stream"}
    era = {**accept, "mcp-protocol-version": _MODERN, "mcp-method": "tools/call", "mcp-name": "get_shop"}
    return {
        "suggest, 2 letters": Request("GET", "/suggest?q=br"),
        "suggest, 6 letters": Request("GET", "/suggest?q=brooma"),
        "suggest, misspelt": Request("GET", "/suggest?q=shuoktra"),
        "find_shop, a page of 10": Request(
            "POST", "/tool/find_shop", json.dumps({"query": "b", "limit": 10}), json_body
        ),
        "find_shop, a page of 100": Request(
            "POST", "/tool/find_shop", json.dumps({"query": "b", "limit": 100}), json_body
        ),
        "get_shop over REST": Request("POST", "/tool/get_shop", json.dumps(call["arguments"]), json_body),
        "get_shop over MCP, modern": Request("POST", "/mcp", json.dumps(modern), era),
        "get_shop over MCP, older": Request(
            "POST", "/mcp", json.dumps(legacy), {**accept, "mcp-protocol-version": "2025-11-25"}
        ),
    }


def median_ms(port: int, request: Request, count: int) -> float:
    """The median time of a request, in milliseconds, after a warm-up.

    Raises:
        RuntimeError: an answer was not 200; a benchmark of failures says nothing.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    times = []
    for _ in range(_WARM_UP + count):
        started = time.perf_counter()
        connection.request(request.method, request.path, request.body, dict(request.headers or {}))
        answer = connection.getresponse()
        body = answer.read()
        times.append(time.perf_counter() - started)
        if answer.status != http.client.OK or b'"isError":true' in body:
            raise RuntimeError(f"{request.path} answered {answer.status}: {body[:200]!r}")
    connection.close()
    return statistics.median(times[_WARM_UP:]) * 1000


@contextmanager
def service(index: Path, settings: Mapping[str, str] | None = None) -> Iterator[int]:
    """The service in a process of its own; yields its port.

    It serves the embedded index, unless the settings, environment variables, name another engine.
    """
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "shop_directory", "serve", "--port", str(port)]
    environment = {**os.environ, "SHOP_DIRECTORY_DATA_DIR": str(index), "SHOP_DIRECTORY_LOG_LEVEL": "warning"}
    environment |= settings or {}
    with running(command, environment, lambda: answers(port, "/ready")):
        yield port


@contextmanager
def bare_asgi() -> Iterator[int]:
    """An application that does nothing but answer a kilobyte; yields its port."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "uvicorn", "bench.bare:app", "--port", str(port), "--no-access-log"]
    command += ["--log-level", "warning"]
    with running(command, dict(os.environ), lambda: answers(port, "/")):
        yield port


@contextmanager
def running(
    command: list[str], environment: dict[str, str], ready: Callable[[], bool], within: float = _START_SECONDS
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready, and ended afterwards.

    Raises:
        RuntimeError: it was not ready within so many seconds.
    """
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    try:
        deadline = time.monotonic() + within
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[2]} did not start")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(port: int, path: str) -> bool:
    """Whether a server answers a request with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()
