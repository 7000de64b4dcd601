"""Bytes to a service by hand, over HTTP, MCP and stdio, and whatever comes back, within a bound of time."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support import forked
from tests.support.real.sources import REPOSITORY
from tests.support.served import Reply, post

BOUND_S: Final = 10.0

_READ_BYTES: Final = 65_536


def connect(base: str) -> socket.socket:
    address = urlsplit(base)
    return socket.create_connection((str(address.hostname), address.port or 0), timeout=BOUND_S)


def exchange(base: str, *pieces: bytes, pause: float = 0.0, finish: bool = False) -> list[Reply]:
    """Send pieces, one after the other, and read until the service hangs up; returns the answers in their order.

    What is left is not sent once the service has answered. `pause` is seconds between two pieces; `finish` closes the
    sending side after the last one.
    """
    deadline = time.monotonic() + BOUND_S
    received = bytearray()
    with connect(base) as connection:
        _send(connection, pieces, pause)
        try:
            if finish:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(_READ_BYTES):
                received += part
                assert time.monotonic() < deadline, "the service goes on and on"
        except TimeoutError as stuck:
            raise AssertionError(f"the service did not hang up; it sent {bytes(received[:200])!r}") from stuck
        except ConnectionError:
            # It hung up on what had not been read yet; the answer came before that.
            pass
    return replies(bytes(received))


def replies(received: bytes) -> list[Reply]:
    """Take answers apart that follow one another; each states the length of its body."""
    found = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        length = int(headers.get("content-length", 0))
        found.append(Reply(int(status.split(" ")[1]), headers, rest[:length]))
        received = rest[length:]
    return found


def _send(connection: socket.socket, pieces: Iterable[bytes], pause: float) -> None:
    for piece in pieces:
        answered, _, _ = select.select([connection], [], [], pause)
        if answered:
            return
        try:
            connection.sendall(piece)
        except ConnectionError:
            return


ABOUT: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


class Era(StrEnum):
    STATELESS = "2026-07-28"
    HANDSHAKE = "2025-11-25"


def call(base: str, era: Era, tool: str, arguments: bytes, **headers: str) -> Reply:
    """tools/call with the arguments' bytes as they are; header names with _ for -."""
    params = b'"name":"%s","arguments":%s' % (tool.encode(), arguments)
    return request(base, era, "tools/call", params, name=tool, **headers)


def request(
    base: str,
    era: Era,
    method: str,
    params: bytes = b"",
    *,
    name: str | None = None,
    path: str = "/mcp",
    **headers: str,
) -> Reply:
    """Any request; `params` are the members of the object, as bytes."""
    headers |= {"mcp_protocol_version": str(era)}
    if era is Era.STATELESS:
        params = b",".join(filter(None, (params, b'"_meta":' + json.dumps(ABOUT).encode())))
        headers |= {"mcp_method": method} | ({"mcp_name": name} if name else {})
    body = b'{"jsonrpc":"2.0","id":7,"method":"%s","params":{%s}}' % (method.encode(), params)
    return post(base, path, body, **headers)


_END_BOUND_S: Final = 20.0
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


class StdioLines:
    """The service as a process; `log` is filled when it has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.log = ""

    def ask(self, *lines: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"".join(line + b"\n" for line in lines))
        self._process.stdin.flush()
        return self._process.stdout.readline()


@contextmanager
def stdio_lines(variables: Mapping[str, str], *module: str) -> Iterator[StdioLines]:
    """Start a module with its arguments, by default the service, with more variables in its environment.

    At the end its input is closed, and it must end well without another line.
    """
    command = [sys.executable, "-m", *(module or ("service", "mcp"))]
    environment = {**os.environ, **variables, "PYTHONPATH": str(REPOSITORY)}
    pipe = subprocess.PIPE
    with forked.start(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        lines = StdioLines(process)
        yield lines
        rest, log = process.communicate(timeout=_END_BOUND_S)
    lines.log = log.decode()
    assert (rest, process.returncode) == (b"", 0), lines.log


def problem(status: int, code: str, detail: str, *errors: tuple[str, str], title: str | None = None) -> dict[str, Any]:
    """A whole problem document; the title is the code in words unless given.

    `errors` are field and message of each wrong field; a document without any has no `errors`.
    """
    document = {
        "type": f"urn:shop-directory:problem:{code}",
        "title": title or code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
    }
    listed = [{"field": field, "message": message} for field, message in errors]
    return document | ({"errors": listed} if listed else {})


def invalid_input(*errors: tuple[str, str]) -> dict[str, Any]:
    return problem(400, "invalid_input", " ".join(f"{field} {message}." for field, message in errors), *errors)
