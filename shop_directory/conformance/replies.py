"""A request and its answer as values. What an answer holds is the other side's: it is bounded, and only ever text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shop_directory.conformance.part import Part
from shop_directory.conformance.rule import Finding, RuleBrokenError

MAX_BYTES: Final = 4 * 1024 * 1024
_SHOWN: Final = 400
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

    def answer(self, status: int = 200) -> Part:
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

    def document(self) -> Part:
        """The body as JSON, whatever the status and the media type.

        Raises:
            RuleBrokenError: it is not JSON.
        """
        try:
            return Part(self, "", orjson.loads(self.body))
        except orjson.JSONDecodeError:
            raise self.broken("a body that is valid JSON") from None

    def problem(self, status: int, *codes: str) -> Part:
        """The problem object of an error of this status, and of one of these codes if any is given.

        Raises:
            RuleBrokenError: it is another status, no JSON object, or of another code.
        """
        document = self.answer(status)
        if codes and document["code"].value not in codes:
            raise self.broken(f"an error with the code {' or '.join(codes)}")
        return document


def bounded(text: str) -> str:
    """Text that is shown: of bounded length, without control characters."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in cut)


def as_json(document: Mapping[str, Any]) -> bytes:
    """The bytes of a JSON body."""
    return orjson.dumps(document)
