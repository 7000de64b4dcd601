"""MCP on stdin and stdout, a message a line: a bad line gets an error answer and the session goes on (I4, E6)."""

import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import INVALID_REQUEST

from service.errors import MAX_BODY_BYTES
from service.mcp_server.handling import Call
from service.mcp_server.messages import RpcError, check_message, in_place_of
from service.runtime.caller import Caller, Channel, new_request_id

LOCAL: Final = "stdio"

_TOO_LONG: Final = f"A message may hold at most {MAX_BODY_BYTES:,} bytes."


def call_over_stdio(token: str | None) -> Callable[[object], Call]:
    """Tells whose request it is: there is one local caller, whose token the environment holds (Q3)."""

    def call(_: object) -> Call:
        return Call(Caller(Channel.STDIO, new_request_id(), token, LOCAL))

    return call


async def serve_stdio(server: Server[Any], patience: float) -> None:
    """Serve until stdin ends and what it asked is answered.

    Args:
        server: the tools, resources and prompts.
        patience: seconds after the end of stdin without any answer, after which requests count as lost.
    """
    with _private_streams() as (stdin, stdout):
        lines = _OutgoingLines(stdout)
        checked = _CheckedLines(stdin, lines, patience)
        # The SDK wants files of text and only iterates the one, writes and flushes the other.
        streams = cast("tuple[anyio.AsyncFile[str], anyio.AsyncFile[str]]", (checked, lines))
        async with stdio_server(*streams) as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())


class _OutgoingLines:
    """Lines to stdout, whole ones only: the SDK and the checks both write."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._turn = anyio.Lock()
        # Requests without an answer by their ids: a client may use an id twice.
        self._unanswered: Counter[str] = Counter()
        self._written = anyio.Event()

    def expect(self, message: dict[str, Any]) -> None:
        """Note that a request will be answered, or, after its cancellation, that it may not be."""
        if "id" in message:
            self._unanswered[str(message["id"])] += 1
        elif message["method"] == "notifications/cancelled":
            self._settle((message.get("params") or {}).get("requestId"))

    async def finished(self, patience: float) -> None:
        """Wait until all requests are answered, or nothing has been written for so many seconds."""
        while self._unanswered:
            self._written = anyio.Event()
            with anyio.move_on_after(patience) as waiting:
                await self._written.wait()
            if waiting.cancelled_caught:
                return

    async def write(self, text: str) -> None:
        """Write a message of the SDK, with our text if it is an error."""
        message = json.loads(text)
        own = in_place_of(message)
        await self.write_line(text.encode() if own is None else own + b"\n")
        if "method" not in message:
            self._settle(message.get("id"))
            self._written.set()

    async def write_line(self, line: bytes) -> None:
        """Write a line as it is."""
        async with self._turn:
            await anyio.to_thread.run_sync(self._write, line)

    async def flush(self) -> None:
        """Every write is flushed already."""

    def _write(self, line: bytes) -> None:
        self._stream.write(line)
        self._stream.flush()

    def _settle(self, request_id: object) -> None:
        key = str(request_id)
        if self._unanswered[key] <= 1:
            del self._unanswered[key]
        else:
            self._unanswered[key] -= 1


class _CheckedLines:
    """Lines of stdin that hold a message; the others are answered here."""

    def __init__(self, stream: BinaryIO, answers: _OutgoingLines, patience: float) -> None:
        self._stream = stream
        self._answers = answers
        self._patience = patience

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._next_line, abandon_on_cancel=True):
            if not line.strip():
                continue
            try:
                if len(line) > MAX_BODY_BYTES:
                    raise RpcError(INVALID_REQUEST, _TOO_LONG)  # noqa: TRY301 - one place answers all refusals
                message = check_message(line)
            except RpcError as error:
                await self._answers.write_line(error.body() + b"\n")
                continue
            self._answers.expect(message)
            yield line.decode()
        # At the end of what it reads the SDK cancels whatever it has not answered.
        await self._answers.finished(self._patience)

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
