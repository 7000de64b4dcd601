"""The HTTP client of a run: bounded in bytes, time, requests and concurrency; it waits where a quota is used up.

It sends requests to the given address only: a redirect is a response, and proxies and netrc of the environment are not
used. Whatever the service sends becomes a `Response`, a `RuleBrokenError` or a `NotAskedError`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

import httpx2

from shop_directory.conformance.exchange import Finding, NotAskedError, Request, Response, RuleBrokenError, TooLongError

USER_AGENT: Final = "shop-directory-check"
_TOO_MANY: Final = 429
# Two windows of a quota that is counted by the minute.
_LONGEST_WAIT_S: Final = 130.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a run may use, however slow or hostile the service is.

    `timeout` is in seconds for one response, from the first byte sent to the last one read; `within` is for the whole
    run; `concurrency` bounds the requests in flight.
    """

    timeout: float = 10.0
    within: float = 300.0
    requests: int = 1000
    concurrency: int = 4


USUAL: Final = Bounds()


@dataclass(slots=True)
class Client:
    """Sends requests below a base URL. A transport replaces the network, for an application in the same process.

    `requests` and `waited` count what a run has used so far, the latter in seconds spent waiting for the quota of the
    service; `on_wait` is called once for each wait, with its seconds.
    """

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
