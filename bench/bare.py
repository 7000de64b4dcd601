"""The limit that no door can be faster than: an ASGI application that sends a kilobyte of JSON."""

from collections.abc import Awaitable, Callable
from typing import Any

_BODY = b'{"answer":"' + b"x" * 1_010 + b'"}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer every request alike."""
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _BODY})
