"""Compresses answers of a kilobyte or more for callers who accept gzip, by Starlette's responder.

Answers hold no secrets and browsers attach no credentials by themselves, so the length of a compressed answer discloses
nothing (BREACH).
"""

import gzip
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipResponder
from starlette.types import ASGIApp, Message, Scope, Send

from service.http.messages import Answer, header

VARY: Final = (b"vary", b"Accept-Encoding")
MIN_BYTES: Final = 1_024

_GZIP: Final = (b"content-encoding", b"gzip")
# A higher level makes a page of 50 shops 2% smaller and takes 20% more time.
_LEVEL: Final = 5
# Events are sent without delay.
_STREAMED: Final = ("text/event-stream",)
_REFUSED: Final = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})


def compressing(app: ASGIApp, scope: Scope, send: Send) -> Send:
    """A send that compresses the answer of an application if the caller accepts that."""
    if not accepts_gzip(scope["headers"]):
        # No Vary is needed: cacheable answers that have a compressed variant set it themselves.
        return send
    if scope["method"] == "HEAD":
        return lambda message: send(_head_of_get(message))
    # It does not call the application: only its way of sending is used.
    responder = GZipResponder(app, MIN_BYTES, _LEVEL, exclude_content_types=_STREAMED)
    responder.send = send
    return responder.send_with_compression


def accepts_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request's Accept-Encoding allows gzip."""
    for part in (header(headers, b"accept-encoding") or "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in _REFUSED
    return False


def compressed(answer: Answer) -> Answer | None:
    """A constant answer, compressed; None where it is too short."""
    if len(answer.body) < MIN_BYTES:
        return None
    return replace(answer, body=_gzip(answer.body), headers=(*answer.headers, _GZIP, VARY))


@lru_cache(maxsize=64)
def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


def _head_of_get(message: Message) -> Message:
    """The head of an answer to HEAD as it would be for GET, without content-length where GET is compressed."""
    if message["type"] != "http.response.start":
        return message
    headers = MutableHeaders(raw=list(message["headers"]))
    length = headers.get("content-length", "")
    if "content-encoding" not in headers and length.isdecimal() and int(length) >= MIN_BYTES:
        headers.add_vary_header("Accept-Encoding")
        headers["content-encoding"] = "gzip"
        del headers["content-length"]
    return {**message, "headers": headers.raw}
