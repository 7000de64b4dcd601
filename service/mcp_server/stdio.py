"""MCP on stdin and stdout, one message per line; a bad line gets an error, and the session goes on (I4, E6)."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.stdio import stdio_server
from mcp.types import INVALID_REQUEST

from service.calls.live_data import OPENING_S
from service.errors import MAX_BODY_BYTES
from service.mcp_server.messages import Call, RpcError, check_message, own_answer
from service.runtime.caller import Caller, Channel
from service.runtime.request_context import new_request_id

LOCAL: Final = "stdio"
# The methods that are answered from the index.
_CALLS: Final = frozenset({"tools/call", "resources/read", "completion/complete"})

_TOO_LONG: Final = f"A message may hold at most {MAX_BODY_BYTES:,} bytes."


def call_over_stdio(token: str | None) -> Callable[[object], Call]:
    """Makes the calls of the one local caller, whose token comes from the environment (Q3)."""

    def call(_: object) -> Call:
        return Call(Caller(Channel.STDIO, new_request_id(), token, LOCAL))

    return call


def wait_for_index(opening: asyncio.Task[None]) -> ServerMiddleware[Any]:
    """Let calls wait until the index is open, or failed to open (E3), outside their deadlines, at most `OPENING_S`."""

    async def wait(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method in _CALLS:
            await asyncio.wait((opening,), timeout=OPENING_S)
        return await call_next(ctx)

    return wait


async def serve_stdio(server: Server[Any], drain_timeout: float) -> None:
    """Serve until stdin ends and all requests are answered, or no answer comes for `drain_timeout` seconds."""
    with _private_streams() as (stdin, stdout):
        lines = _OutgoingLines(stdout)
        checked = _CheckedLines(stdin, lines, drain_timeout)
        # Typed as text files, but the SDK only iterates over the first, and writes to and flushes the second.
        streams = cast("tuple[anyio.AsyncFile[str], anyio.AsyncFile[str]]", (checked, lines))
        async with stdio_server(*streams) as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())


class _OutgoingLines:
    """Writes whole lines to stdout, for the SDK and for the checks."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._write_lock = anyio.Lock()
        # Unanswered requests by id: a client may use an id twice.
        self._unanswered: Counter[str] = Counter()
        self._written = anyio.Event()

    def expect(self, message: dict[str, Any]) -> None:
        """Count a request as unanswered, or, for a cancellation, stop waiting for its answer."""
        if "id" in message:
            self._unanswered[str(message["id"])] += 1
        elif message["method"] == "notifications/cancelled":
            self._settle((message.get("params") or {}).get("requestId"))

    async def finished(self, drain_timeout: float) -> None:
        """Wait until all requests are answered, or nothing has been written for `drain_timeout` seconds."""
        while self._unanswered:
            self._written = anyio.Event()
            with anyio.move_on_after(drain_timeout) as waiting:
                await self._written.wait()
            if waiting.cancelled_caught:
                return

    async def write(self, text: str) -> None:
        """Write a message of the SDK, or our error instead of its."""
        message = json.loads(text)
        line = text.encode().rstrip()
        await self.write_line((own_answer(line) if "error" in message else line) + b"\n")
        if "method" not in message:
            self._settle(message.get("id"))
            self._written.set()

    async def write_line(self, line: bytes) -> None:
        async with self._write_lock:
            await anyio.to_thread.run_sync(self._write, line)

    async def flush(self) -> None:
        """Do nothing: every write is flushed."""

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
    """The lines of stdin that hold a message; the others are answered here."""

    def __init__(self, stream: BinaryIO, answers: _OutgoingLines, drain_timeout: float) -> None:
        self._stream = stream
        self._answers = answers
        self._drain_timeout = drain_timeout

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._next_line, abandon_on_cancel=True):
            if not line.strip():
                continue
            try:
                if len(line) > MAX_BODY_BYTES:
                    raise RpcError(INVALID_REQUEST, _TOO_LONG)  # noqa: TRY301 - one handler answers all refusals
                message = check_message(line)
            except RpcError as error:
                await self._answers.write_line(error.body() + b"\n")
                continue
            self._answers.expect(message)
            yield line.decode()
        # When this iterator ends, the SDK cancels all unanswered requests.
        await self._answers.finished(self._drain_timeout)

    def _next_line(self) -> bytes:
        """The next line; one that is too long is cut after the limit."""
        line = self._stream.readline(MAX_BODY_BYTES + 1)
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = self._stream.readline(MAX_BODY_BYTES)
        return line


@contextmanager
def _private_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Stdin and stdout for the protocol alone; meanwhile a stray print goes to stderr."""
    sys.stdout.flush()
    stdin_copy, stdout_copy = os.dup(0), os.dup(1)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.dup2(2, 1)
    os.close(devnull)
    try:
        # Not closed: a thread may still be reading from stdin when the session ends.
        with os.fdopen(stdin_copy, "rb", closefd=False) as stdin, os.fdopen(stdout_copy, "wb", closefd=False) as stdout:
            yield stdin, stdout
    finally:
        os.dup2(stdin_copy, 0)
        os.dup2(stdout_copy, 1)
