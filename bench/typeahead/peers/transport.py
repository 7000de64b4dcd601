"""A thin server for peers in Python: raw ASGI on uvicorn with uvloop and httptools, one process, no access log.

Each peer only provides how its index is opened and searched, so that they differ in nothing else.
"""

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import orjson
import uvicorn

from bench.typeahead.peers.folding import host_of
from bench.typeahead.system import LIMIT

_JSON = [(b"content-type", b"application/json")]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: what was typed (of a pasted URL, its host), how many shops, and the market if one was named."""

    q: str
    limit: int
    country: str | None


# What a shop is on the wire: id, name, domain, category.
Row = tuple[str, str, str, str]
Answer = Callable[[Asked], Awaitable[Sequence[Row]]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Opening = Callable[[Path], AbstractAsyncContextManager[Answer]]


class Transport:
    """An ASGI application around one answer."""

    def __init__(self, opening: Opening, folder: Path) -> None:
        """Configure the application; it opens the index when it starts."""
        self._opening = opening
        self._folder = folder
        self._stack = AsyncExitStack()
        self._answer: Answer | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or follow the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        assert self._answer is not None  # noqa: S101 - the server starts the lifespan first
        asked = parse(scope["query_string"])
        rows = await self._answer(asked)
        body = body_of(asked.q, rows)
        headers = [*_JSON, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._answer = await self._stack.enter_async_context(self._opening(self._folder))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stack.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def parse(query_string: bytes) -> Asked:
    """Read a raw query string."""
    given = dict(pair.split("=", 1) for pair in query_string.decode("ascii").split("&") if "=" in pair)
    return Asked(
        q=host_of(unquote_plus(given.get("q", ""))),
        limit=int(given.get("limit", LIMIT)),
        country=given.get("country"),
    )


def body_of(q: str, rows: Sequence[Row]) -> bytes:
    """The answer as JSON."""
    shops = [
        {"id": shop_id, "name": name, "domain": domain, "category": category}
        for shop_id, name, domain, category in rows
    ]
    return orjson.dumps({"query": q, "shops": shops})


def main(opening: Opening) -> None:
    """Serve until SIGTERM or the end of standard input: the arguments are index folder and loopback port."""
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=_end_with_input, daemon=True).start()
    uvicorn.run(
        Transport(opening, folder),
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
    )


def _end_with_input() -> None:
    """End when the process that started this one ends, however it ends."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
