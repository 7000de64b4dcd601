"""JSON in, strictly, and JSON out, the same bytes on every door (E6, I5)."""

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
        InvalidInputError: it is empty, not strict JSON, or its root is no object. The value is not echoed.
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
    """The bytes of an answer: the REST body, and decoded the text of an MCP result."""
    return orjson.dumps(document)


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The first header of a (lower-case) name."""
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


def entity_tags(if_none_match: str | None) -> frozenset[str]:
    """The entity tags in the value of If-None-Match; a weak mark does not matter for a GET."""
    if if_none_match is None:
        return frozenset()
    return frozenset(tag.strip().removeprefix("W/") for tag in if_none_match.split(","))


def is_json(content_type: str | None) -> bool:
    """Whether the header declares application/json; parameters such as charset do not matter."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "application/json"


async def read_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> bytes:
    """Read a request body, at most 64 KiB of it, whatever its declared length says.

    Raises:
        BodyTooLargeError: it is longer; the rest is not read.
        InvalidInputError: the caller went away before its end.
    """
    declared = header(headers, b"content-length")
    if declared is not None and declared.isdecimal() and int(declared[:20]) > MAX_BODY_BYTES:
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
