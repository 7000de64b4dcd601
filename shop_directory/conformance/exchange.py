"""Requests, responses and their JSON values as the rules read them, how a rule can be broken, and the HTTP client.

The service is not trusted: what it sends is bounded and shown as plain text, and becomes a `Response`, a
`RuleBrokenError` or a `NotAskedError`. The client asks the given address only, without redirects, proxies and netrc.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self, TypeVar

import httpx2
import orjson

from shop_directory.conformance.bounds import USUAL, Bounds

MAX_BYTES: Final = 4 * 1024 * 1024
_SHOWN: Final = 400
_SHOWN_VALUE: Final = 120
_UTC_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_SECRET_HEADERS: Final = frozenset({"x-api-token", "x-ops-key", "authorization"})
USER_AGENT: Final = "shop-directory-check"
_TOO_MANY: Final = 429
# Two windows of a quota that is counted by the minute.
_LONGEST_WAIT_S: Final = 130.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """How a rule was broken, as texts of bounded length; the request is shown without credentials."""

    request: str
    expected: str
    actual: str


class RuleBrokenError(Exception):
    """The response breaks the rule."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.expected)


class TooLongError(RuleBrokenError):
    """The response is longer than a run reads."""


class NothingToSeeError(Exception):
    """The catalogue holds nothing that could break the rule; the text names the missing data."""


class NotAskedError(Exception):
    """The check of the rule could not be finished: the run has used up its requests, its time or the quota."""


def require(found: T | None, missing: str) -> T:
    """A value that a rule needs; where it is None, empty or false, NothingToSeeError names it."""
    if not found:
        raise NothingToSeeError(missing)
    return found


@dataclass(frozen=True, slots=True)
class Request:
    """A request below the base address, header names in lower case; at most `max_bytes` of the body are read."""

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    max_bytes: int = MAX_BYTES

    @property
    def shown(self) -> str:
        """The request as text, without credentials."""
        named = [name for name, _ in self.headers if name in _SECRET_HEADERS]
        parts = [f"{self.method} {self.path}"]
        if self.body:
            parts.append(bounded(self.body.decode("utf-8", "backslashreplace")))
        if named:
            parts.append(f"(with {', '.join(named)})")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response; header names are in lower case, and a repeated header has several entries."""

    request: Request
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """A header's value; of a repeated one the first."""
        return next((value for found, value in self.headers if found == name), None)

    @property
    def media_type(self) -> str:
        """The media type in lower case, without its parameters; empty if none is stated."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def shown(self) -> str:
        """The response as text."""
        return f"{self.status} {bounded(self.body.decode('utf-8', 'backslashreplace'))}".strip()

    def broken(self, expected: str, actual: str | None = None) -> RuleBrokenError:
        """The error for a response that breaks the rule; `actual` is the whole response unless given."""
        return RuleBrokenError(
            Finding(self.request.shown, bounded(expected), self.shown if actual is None else bounded(actual))
        )

    def must(self, holds: object, expected: str, actual: str | None = None) -> None:
        """Raise `broken` unless it holds."""
        if not holds:
            raise self.broken(expected, actual)

    def must_state(self, holds: object, name: str, expected: str) -> None:
        """Raise RuleBrokenError, which shows the header of this name, unless it holds."""
        self.must(holds, expected, f"{name}: {self.header(name) or 'missing'}")

    def expect_status(self, status: int) -> None:
        """Raise RuleBrokenError unless the response has this status."""
        self.must(self.status == status, f"status {status}")

    def json(self, status: int = 200) -> "Part":
        """The JSON object of a response with this status and a JSON media type; RuleBrokenError for any other."""
        self.expect_status(status)
        media_type = self.media_type
        is_json = media_type == "application/json" or media_type.endswith("+json")
        self.must(is_json, "a response in JSON", f"content-type {media_type or 'missing'}")
        document = self.document()
        document.names()
        return document

    def document(self) -> "Part":
        """The body as JSON, whatever the status and the media type; raises RuleBrokenError if it is none."""
        try:
            return Part(self, "", orjson.loads(self.body))
        except orjson.JSONDecodeError:
            raise self.broken("a body that is valid JSON") from None

    def problem(self, status: int, *codes: str) -> "Part":
        """The problem object of an error with this status, and with one of these codes if any are given."""
        document = self.json(status)
        self.must(not codes or document["code"].value in codes, f"an error with the code {' or '.join(codes)}")
        return document


class Part:
    """A JSON value and its path in a response.

    `part["results"][0]["id"].text()` returns the text, or raises RuleBrokenError with the path and the value.
    """

    __slots__ = ("_path", "response", "value")

    def __init__(self, response: Response, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        self.response = response
        self._path = path
        self.value = value

    def __getitem__(self, key: str | int) -> "Part":
        """A required field of an object, or element of an array."""
        if isinstance(key, int):
            values = self.values()
            self.must(-len(values) <= key < len(values), f"at least {key + 1} elements")
            return Part(self.response, f"{self._path}[{key}]", values[key])
        self.must(key in self, f"a field {key}")
        return Part(self.response, f"{self._path}.{key}".lstrip("."), self.value[key])

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def names(self) -> list[str]:
        """The field names of an object."""
        self.must(isinstance(self.value, dict), "an object")
        return list(self.value)

    def values(self) -> list[Any]:
        """The plain values of an array."""
        self.must(isinstance(self.value, list), "an array")
        return list(self.value)

    def each(self) -> Iterator["Part"]:
        """The elements of an array; raises before the first element is read if it is none."""
        return iter([Part(self.response, f"{self._path}[{index}]", value) for index, value in enumerate(self.values())])

    def text(self) -> str:
        """A string that is not empty."""
        self.must(isinstance(self.value, str) and self.value, "a text that is not empty")
        return str(self.value)

    def whole(self) -> int:
        """An integer of at least 0."""
        is_integer = isinstance(self.value, int) and not isinstance(self.value, bool)
        self.must(is_integer and self.value >= 0, "an integer of at least 0")
        return int(self.value)

    def number(self) -> float:
        """A number."""
        self.must(isinstance(self.value, int | float) and not isinstance(self.value, bool), "a number")
        return float(self.value)

    def flag(self) -> bool:
        """True or false."""
        self.must(isinstance(self.value, bool), "true or false")
        return bool(self.value)

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

    def one_of(self, *allowed: str) -> str:
        """A string out of these."""
        self.must(self.value in allowed, f"one of {', '.join(allowed)}")
        return str(self.value)

    def expect(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Raise RuleBrokenError unless the value is exactly this."""
        self.must(self.value == value and isinstance(self.value, bool) == isinstance(value, bool), repr(value))

    def must(self, holds: object, expected: str) -> None:
        """Raise `broken` unless it holds."""
        if not holds:
            raise self.broken(expected)

    def broken(self, expected: str) -> RuleBrokenError:
        """The error for a value that breaks the rule."""
        try:
            shown = repr(self.value)
        except RecursionError:
            shown = "a value that is nested too deep"
        cut = shown if len(shown) <= _SHOWN_VALUE else f"{shown[:_SHOWN_VALUE]}..."
        return self.response.broken(f"{self._path or 'the body'}: {expected}", f"{self._path or 'body'} = {cut}")


def fields_of(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON value
    """All fields of a JSON value at any depth, with their values."""
    remaining = [value]
    while remaining:
        match remaining.pop():
            case dict() as found:
                yield from found.items()
                remaining += found.values()
            case list() as found:
                remaining += found


def bounded(text: str) -> str:
    """Text of bounded length without control characters."""
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in cut)


@dataclass(slots=True)
class Client:
    """Sends requests below a base URL, through a transport if given, and counts them and the seconds of waiting."""

    base: str
    bounds: Bounds = USUAL
    transport: httpx2.AsyncBaseTransport | None = None
    on_wait: Callable[[float], None] = lambda _: None
    requests: int = 0
    waited: float = 0.0
    # Monotonic time.
    not_before: float = 0.0
    _http: httpx2.AsyncClient = field(init=False)
    _in_flight: asyncio.Semaphore = field(init=False)
    _ends_at: float = field(init=False)

    async def __aenter__(self) -> Self:
        self._http = httpx2.AsyncClient(
            transport=self.transport,
            trust_env=False,
            follow_redirects=False,
            timeout=None,
            headers={"accept-encoding": "identity", "user-agent": USER_AGENT},
        )
        self._in_flight = asyncio.Semaphore(self.bounds.concurrency)
        self._ends_at = time.monotonic() + self.bounds.within
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def wait_until(self, now: float, then: float) -> None:
        """Send nothing before `then`; several responses that ask for one wait cause one call of `on_wait`."""
        if now >= self.not_before:
            self.on_wait(then - now)
        self.waited += max(0.0, then - max(now, self.not_before))
        self.not_before = max(then, self.not_before)

    async def send(self, request: Request) -> Response:
        """The response; where the quota is used up, the one after the waits that the service asks for.

        It raises RuleBrokenError if no complete response came in time and within its bound of bytes, NotAskedError if
        the run has used up its requests or its time, or the quota is used up for long.
        """
        refused_at: float | None = None
        while True:
            response = await self._send_within_bounds(request)
            now = time.monotonic()
            refused_at = now if refused_at is None else refused_at
            pause = _seconds_to_wait(response)
            if pause is None:
                return response
            if now + pause - refused_at > _LONGEST_WAIT_S:
                raise NotAskedError(f"the quota for this request is used up for another {pause:.0f} seconds")
            self.wait_until(now, now + pause)

    async def _send_within_bounds(self, request: Request) -> Response:
        async with self._in_flight:
            # The quota is one for all requests, so all of them wait.
            await asyncio.sleep(max(0.0, min(self.not_before, self._ends_at) - time.monotonic()))
            remaining = self._ends_at - time.monotonic()
            if remaining <= 0:
                raise self._time_used_up()
            if self.requests >= self.bounds.requests:
                raise NotAskedError(f"the run has sent its {self.bounds.requests} requests")
            self.requests += 1
            try:
                async with asyncio.timeout(min(remaining, self.bounds.timeout)):
                    return await self._exchange(request)
            except TimeoutError:
                if remaining < self.bounds.timeout:
                    raise self._time_used_up() from None
                raise RuleBrokenError(
                    _incomplete(request, f"no complete response within {self.bounds.timeout:g} seconds")
                ) from None
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
                raise RuleBrokenError(_incomplete(request, f"no HTTP response ({type(error).__name__})")) from None

    def _time_used_up(self) -> NotAskedError:
        return NotAskedError(f"the run has used its {self.bounds.within:.0f} seconds")

    async def _exchange(self, request: Request) -> Response:
        url = self.base + request.path
        outgoing = httpx2.Request(request.method, url, content=request.body or None, headers=list(request.headers))
        for name, value in self._http.headers.items():
            outgoing.headers.setdefault(name, value)
        response = await self._http.send(outgoing, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > request.max_bytes:
                    raise TooLongError(_incomplete(request, f"more than {request.max_bytes:,} bytes"))
            headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
            return Response(request, response.status_code, headers, bytes(body))
        finally:
            await response.aclose()


def _seconds_to_wait(response: Response) -> float | None:
    """Seconds to wait before the request is sent again; None where the response asks for no wait."""
    stated = response.header("retry-after") or ""
    if response.status != _TOO_MANY or not (stated.isascii() and stated.isdigit()):
        return None
    return max(float(stated[:9]), 0.1)


def _incomplete(request: Request, actual: str) -> Finding:
    return Finding(request.shown, "a complete HTTP response", actual)
