"""A bare ASGI application that sends one prepared body: an upper bound for any service on the same server.

It looks nothing up. The environment variable `BENCH_BODY_BYTES` sets the size of the body, so that the application can
send as much as the service that it is compared with.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

SIZE_VARIABLE: Final = "BENCH_BODY_BYTES"
DEFAULT_BYTES: Final = 1_024
_FRAME: Final = b'{"shops":[],"filler":"%s"}'
_BODY: Final = _FRAME % (b"x" * max(0, int(os.environ.get(SIZE_VARIABLE, DEFAULT_BYTES)) - len(_FRAME) + 2))
_HEADERS: Final = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Send the same response to every request."""
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _BODY})
