"""A request and its answer as values. What an answer holds is the other side's: it is bounded, and only ever text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from shop_directory.conformance.findings import Finding, RuleBrokenError

MAX_BYTES: Final = 4 * 1024 * 1024
_SHOWN: Final = 400
_SHOWN_VALUE: Final = 120
_UTC_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_SECRET_HEADERS: Final = frozenset({"x-api-token", "x-ops-key", "authorization"})


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request below the base address.

    Attributes:
        method: of HTTP.
        path: begins with a slash; its query, if any, is part of it and sent as it is.
        body: the bytes.
        headers: beside those that HTTP itself needs; names in lower case.
        max_bytes: of the answer that are read; more is no answer.
    """

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    max_bytes: int = MAX_BYTES

    @property
    def shown(self) -> str:
        """The request for people, without credentials."""
        named = [name for name, _ in self.headers if name in _SECRET_HEADERS]
        parts = [f"{self.method} {self.path}"]
        if self.body:
            parts.append(bounded(self.body.decode("utf-8", "backslashreplace")))
        if named:
            parts.append(f"(with {', '.join(named)})")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Attributes:
        ask: what was asked.
        status: of HTTP.
        headers: as they came, names in lower case; a repeated one has several entries.
        body: the bytes.
    """

    ask: Ask
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """A header's value; of a repeated one the first."""
        return next((value for found, value in self.headers if found == name), None)

    @property
    def shown(self) -> str:
        """The answer for people."""
        return f"{self.status} {bounded(self.body.decode('utf-8', 'backslashreplace'))}".strip()

    def broken(self, expected: str, came: str | None = None) -> RuleBrokenError:
        """The error that says that this answer breaks the rule; `came` is the whole answer unless given."""
        return RuleBrokenError(
            Finding(self.ask.shown, bounded(expected), self.shown if came is None else bounded(came))
        )

    def expect_status(self, status: int) -> None:
        """Raise unless the answer has this status."""
        if self.status != status:
            raise self.broken(f"status {status}")

    def answer(self, status: int = 200) -> "Part":
        """The JSON object of an answer of this status and of a JSON media type.

        Raises:
            RuleBrokenError: it is another status, or no JSON object.
        """
        self.expect_status(status)
        media_type = (self.header("content-type") or "").partition(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            raise self.broken("an answer in JSON", f"content-type {media_type or 'missing'}")
        document = self.document()
        document.keys()
        return document

    def document(self) -> "Part":
        """The body as JSON, whatever the status and the media type.

        Raises:
            RuleBrokenError: it is not JSON.
        """
        try:
            return Part(self, "", orjson.loads(self.body))
        except orjson.JSONDecodeError:
            raise self.broken("a body that is valid JSON") from None

    def problem(self, status: int, *codes: str) -> "Part":
        """The problem object of an error of this status, and of one of these codes if any is given.

        Raises:
            RuleBrokenError: it is another status, no JSON object, or of another code.
        """
        document = self.answer(status)
        if codes and document["code"].value not in codes:
            raise self.broken(f"an error with the code {' or '.join(codes)}")
        return document


class Part:
    """A JSON value at its place in an answer. `part["results"][0]["id"].text()` reads, or raises RuleBrokenError."""

    __slots__ = ("_place", "_reply", "value")

    def __init__(self, reply: Reply, place: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        self._reply = reply
        self._place = place
        self.value = value

    def __getitem__(self, key: str | int) -> "Part":
        """A member that must be there."""
        if isinstance(key, int):
            values = self.values()
            if not -len(values) <= key < len(values):
                raise self.broken(f"at least {key + 1} elements")
            return Part(self._reply, f"{self._place}[{key}]", values[key])
        if key not in self.keys():
            raise self.broken(f"a field {key}")
        return Part(self._reply, f"{self._place}.{key}".lstrip("."), self.value[key])

    def keys(self) -> list[str]:
        """The names of an object."""
        if not isinstance(self.value, dict):
            raise self.broken("an object")
        return list(self.value)

    def values(self) -> list[Any]:
        """The plain values of an array."""
        if not isinstance(self.value, list):
            raise self.broken("an array")
        return self.value

    def each(self) -> Iterator["Part"]:
        """The elements of an array; that it is one is checked at once."""
        return iter([Part(self._reply, f"{self._place}[{place}]", value) for place, value in enumerate(self.values())])

    def text(self) -> str:
        """A string that is not empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self.broken("a text")
        return self.value

    def whole(self) -> int:
        """A whole number from 0."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise self.broken("a whole number from 0")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.broken("true or false")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """An array of strings."""
        return tuple(part.text() for part in self.each())

    def time(self) -> datetime:
        """A UTC time as RFC 3339 writes it."""
        if not isinstance(self.value, str) or _UTC_TIME.fullmatch(self.value) is None:
            raise self.broken("a UTC time such as 2026-01-31T09:30:00Z")
        try:
            return datetime.fromisoformat(self.value)
        except ValueError:
            raise self.broken("a time that exists") from None

    @property
    def is_null(self) -> bool:
        """Whether it is null."""
        return self.value is None

    def one_of(self, *allowed: str) -> str:
        """One of a few words."""
        if not isinstance(self.value, str) or self.value not in allowed:
            raise self.broken(f"one of {', '.join(allowed)}")
        return self.value

    def expect(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Raise unless it is exactly this."""
        if self.value != value or isinstance(self.value, bool) != isinstance(value, bool):
            raise self.broken(repr(value))

    def broken(self, expected: str) -> RuleBrokenError:
        """The error that says that this part is not what the rule demands."""
        try:
            shown = repr(self.value)
        except RecursionError:
            shown = "something that is nested too deep"
        cut = shown if len(shown) <= _SHOWN_VALUE else f"{shown[:_SHOWN_VALUE]}..."
        return self._reply.broken(f"{self._place or 'the answer'}: {expected}", f"{self._place or 'answer'} = {cut}")


def bounded(text: str) -> str:
    """Text that is shown: of bounded length, without control characters."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in cut)


def as_json(document: Mapping[str, Any]) -> bytes:
    """The bytes of a JSON body."""
    return orjson.dumps(document)
