"""The one HTTP client of a run: bounded in bytes, time, requests and concurrency, and polite to quotas.

It asks the given address only: redirects are answers, proxies and netrc of the environment are not used. Whatever the
other side sends, it ends as a `Reply`, as a broken rule, or as `NotAskedError`; it neither hangs nor crashes.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

import httpx2

from shop_directory.conformance.bounds import USUAL, Bounds
from shop_directory.conformance.exchange import Ask, Reply
from shop_directory.conformance.findings import Finding, NotAskedError, RuleBrokenError, TooLongError

USER_AGENT: Final = "shop-directory-check"
_TOO_MANY: Final = 429
# Two windows of a quota by the minute.
_LONGEST_WAIT_S: Final = 130.0


@dataclass(slots=True)
class Spent:
    """What a run has taken so far.

    Attributes:
        requests: that were sent.
        waited: seconds that the service asked to wait for its quota.
        not_before: when its quota has something again, on the monotonic clock.
        told: is told of each wait, in seconds from now.
    """

    requests: int = 0
    waited: float = 0.0
    not_before: float = 0.0
    told: Callable[[float], None] = lambda _: None

    def wait_until(self, now: float, then: float) -> None:
        """Nothing is sent before then; one wait that several answers ask for is told once."""
        if now >= self.not_before:
            self.told(then - now)
        self.waited += max(0.0, then - max(now, self.not_before))
        self.not_before = max(then, self.not_before)


@dataclass(slots=True)
class Client:
    """Asks. Equal requests are sent once a run, unless asked for afresh.

    Attributes:
        base: the address of the service, without a slash at its end.
        bounds: of the run.
        transport: another way than the network, for an application in the same process.
        spent: so far.
    """

    base: str
    bounds: Bounds = USUAL
    transport: httpx2.AsyncBaseTransport | None = None
    spent: Spent = field(default_factory=Spent)
    _answers: dict[Ask, "asyncio.Task[Reply]"] = field(default_factory=dict)
    _http: httpx2.AsyncClient = field(init=False)
    _turns: asyncio.Semaphore = field(init=False)
    _ends_at: float = field(init=False)

    async def __aenter__(self) -> Self:
        self._http = httpx2.AsyncClient(
            transport=self.transport,
            trust_env=False,
            follow_redirects=False,
            timeout=None,
            headers={"accept-encoding": "identity", "user-agent": USER_AGENT},
        )
        self._turns = asyncio.Semaphore(self.bounds.concurrency)
        self._ends_at = time.monotonic() + self.bounds.within
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def forgetful(self) -> "Client":
        """The same client without what it has been answered so far."""
        other = Client(self.base, self.bounds, self.transport, self.spent)
        other._http, other._turns, other._ends_at = self._http, self._turns, self._ends_at
        return other

    async def ask(self, ask: Ask, *, fresh: bool = False) -> Reply:
        """The answer; of an equal request that was sent before, the same one, unless `fresh`.

        Raises:
            RuleBrokenError: there was no whole answer in time and within its bound of bytes.
            NotAskedError: the run has spent its requests or its time, or the service's quota for long.
        """
        if fresh:
            return await self._polite(ask)
        if ask not in self._answers:
            self._answers[ask] = asyncio.create_task(self._polite(ask))
        return await self._answers[ask]

    async def _polite(self, ask: Ask) -> Reply:
        """An answer; where the quota is used up, the one after the waits that the service asks for."""
        refused_at: float | None = None
        while True:
            reply = await self._counted(ask)
            now = time.monotonic()
            refused_at = now if refused_at is None else refused_at
            pause = _pause(reply)
            if pause is None:
                return reply
            if now + pause - refused_at > _LONGEST_WAIT_S:
                raise NotAskedError(f"the service's quota for it is used up for {pause:.0f} seconds more")
            self.spent.wait_until(now, now + pause)

    async def _counted(self, ask: Ask) -> Reply:
        async with self._turns:
            # All wait together: others would only be refused as well.
            await asyncio.sleep(max(0.0, min(self.spent.not_before, self._ends_at) - time.monotonic()))
            left = self._ends_at - time.monotonic()
            if left <= 0:
                raise self._out_of_time()
            if self.spent.requests >= self.bounds.requests:
                raise NotAskedError(f"the run has sent its {self.bounds.requests} requests")
            self.spent.requests += 1
            try:
                async with asyncio.timeout(min(left, self.bounds.timeout)):
                    return await self._send(ask)
            except TimeoutError:
                if left < self.bounds.timeout:
                    raise self._out_of_time() from None
                raise RuleBrokenError(_unwhole(ask, f"nothing whole within {self.bounds.timeout:g} seconds")) from None
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
                raise RuleBrokenError(_unwhole(ask, f"no HTTP answer ({type(error).__name__})")) from None

    def _out_of_time(self) -> NotAskedError:
        return NotAskedError(f"the run has taken its {self.bounds.within:.0f} seconds")

    async def _send(self, ask: Ask) -> Reply:
        request = httpx2.Request(ask.method, self.base + ask.path, content=ask.body or None, headers=list(ask.headers))
        request.headers.update(
            {name: value for name, value in self._http.headers.items() if name not in request.headers}
        )
        response = await self._http.send(request, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > ask.max_bytes:
                    raise TooLongError(_unwhole(ask, f"more than {ask.max_bytes:,} bytes"))
            headers = tuple((name.lower(), value) for name, value in response.headers.multi_items())
            return Reply(ask, response.status_code, headers, bytes(body))
        finally:
            await response.aclose()


def _pause(reply: Reply) -> float | None:
    """Seconds to wait before asking again; None where that is not asked for."""
    told = reply.header("retry-after") or ""
    if reply.status != _TOO_MANY or not (told.isascii() and told.isdigit()):
        return None
    return max(float(told[:9]), 0.1)


def _unwhole(ask: Ask, came: str) -> Finding:
    return Finding(ask.shown, "a whole HTTP answer", came)
