"""MCP on stdin and stdout, a message a line: a bad line gets an error answer and the session goes on (I4, E6)."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import INVALID_REQUEST

from service.caller import Caller, Channel, new_request_id
from service.errors import MAX_BODY_BYTES
from service.mcp_server.messages import RpcError, check_message
from service.mcp_server.working import Call

LOCAL: Final = "stdio"

_TOO_LONG: Final = f"A message may hold at most {MAX_BODY_BYTES:,} bytes."


def call_over_stdio(token: str | None) -> Callable[[object], Call]:
    """Tells whose request it is: there is one local caller, whose token the environment holds (Q3)."""

    def call(_: object) -> Call:
        return Call(Caller(Channel.STDIO, new_request_id(), token, LOCAL))

    return call


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until stdin ends."""
    with _private_streams() as (stdin, stdout):
        lines = _OutgoingLines(stdout)
        checked = _CheckedLines(stdin, lines)
        # The SDK wants files of text and only iterates the one, writes and flushes the other.
        streams = cast("tuple[anyio.AsyncFile[str], anyio.AsyncFile[str]]", (checked, lines))
        async with stdio_server(*streams) as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())


class _OutgoingLines:
    """Lines to stdout, whole ones only: the SDK and the checks both write."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._turn = anyio.Lock()

    async def write(self, text: str) -> None:
        async with self._turn:
            await anyio.to_thread.run_sync(self._write, text.encode())

    async def flush(self) -> None:
        """Every write is flushed already."""

    def _write(self, line: bytes) -> None:
        self._stream.write(line)
        self._stream.flush()


class _CheckedLines:
    """Lines of stdin that hold a message; the others are answered here."""

    def __init__(self, stream: BinaryIO, answers: _OutgoingLines) -> None:
        self._stream = stream
        self._answers = answers

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._next_line, abandon_on_cancel=True):
            if not line.strip():
                continue
            try:
                if len(line) > MAX_BODY_BYTES:
                    raise RpcError(INVALID_REQUEST, _TOO_LONG)  # noqa: TRY301 - one place answers all refusals
                check_message(line)
            except RpcError as error:
                await self._answers.write(error.body().decode() + "\n")
                continue
            yield line.decode()

    def _next_line(self) -> bytes:
        """The next line; of one that is too long only as much as shows that it is."""
        line = self._stream.readline(MAX_BODY_BYTES + 1)
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = self._stream.readline(MAX_BODY_BYTES)
        return line


@contextmanager
def _private_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Stdin and stdout for the protocol alone: meanwhile a stray print goes to stderr."""
    sys.stdout.flush()
    inward, outward = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        # A thread may still wait on these when the session ends, so they are not closed under it.
        with os.fdopen(inward, "rb", closefd=False) as stdin, os.fdopen(outward, "wb", closefd=False) as stdout:
            yield stdin, stdout
    finally:
        os.dup2(inward, 0)
        os.dup2(outward, 1)
