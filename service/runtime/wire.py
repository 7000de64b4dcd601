"""Strict JSON input, JSON output with the same bytes over each transport, and a few header readers (E6, I5)."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import orjson

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from service.errors import MAX_BODY_BYTES, BodyTooLargeError, InvalidInputError

JSON: Final = b"application/json"

Receive = Callable[[], Awaitable[Any]]


def decode_object(raw: bytes) -> dict[str, Any]:
    """Parse a request body.

    Raises:
        InvalidInputError: it is empty, not strict JSON, or not an object. The message does not repeat the input.
    """
    if not raw.strip():
        raise InvalidInputError("The body is empty: send a JSON object, {} at least.")
    try:
        value = strict_loads(raw)
    except NotStrictJsonError as error:
        raise InvalidInputError(f"The body {error}.") from None
    if not isinstance(value, dict):
        raise InvalidInputError("The body must be a JSON object.")
    return value


def encode(document: dict[str, Any] | str | float) -> bytes:
    """Encode an answer: the REST body, which decoded is the text of an MCP result."""
    return orjson.dumps(document)


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The value of the first header with a lower-case name; None without one."""
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


def entity_tags(if_none_match: str | None) -> frozenset[str]:
    """The entity tags in a value of If-None-Match, without weakness marks, which do not matter for GET."""
    if if_none_match is None:
        return frozenset()
    return frozenset(tag.strip().removeprefix("W/") for tag in if_none_match.split(","))


def is_json(content_type: str | None) -> bool:
    """Whether a Content-Type is application/json, with any parameters."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


def declares_too_large(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether Content-Length is over the limit of a body, so that the body need not be received."""
    declared = header(headers, b"content-length")
    return declared is not None and declared.isdecimal() and int(declared[:20]) > MAX_BODY_BYTES


async def read_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> bytes:
    """Read a request body of at most 64 KiB, whatever its declared length.

    Raises:
        BodyTooLargeError: it is longer; the rest is not read.
        InvalidInputError: the client disconnected before its end.
    """
    if declares_too_large(headers):
        raise BodyTooLargeError
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise InvalidInputError("The body ended early.")
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLargeError
        if not message.get("more_body", False):
            return bytes(body)
