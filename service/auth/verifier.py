"""Verifies the token of a call (Q1).

Answers of the store are cached for 1.5 s, so that a revocation takes effect everywhere within 2 s, including the time
of the look-up. While look-ups fail, or take longer than a request may wait for stores, tokens that the store confirmed
in the last ten minutes are valid, without waiting, and look-ups go on in the background. Nothing is known of other
tokens then, which is not a refusal.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.auth.protocol import SecretHash, Token, TokenStore, TokensUnavailable
from service.auth.secrets import hash_of, is_token_text
from service.runtime.store_waits import store_wait_budget, timed_store_call, wait_for_store
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import detached_from_request, remaining_seconds

CACHE_SECONDS: Final = 1.5
GRACE_SECONDS: Final = 600.0

# Less than the remainder of the 2 s, so that a call that joins a pending look-up does not get a staler answer.
_ANSWER_SECONDS: Final = 1.0
# A look-up ends much earlier, by its own time-out.
_NO_LIMIT_SECONDS: Final = 60.0
# While the store is unavailable, one look-up starts in this interval.
_RETRY_SECONDS: Final = 0.5
# After an interval without traffic that is longer than a look-up, the next call waits again: the store may be back.
_MARGIN_SECONDS: Final = 0.1
_CAPACITY: Final = 10_000
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A cached answer of the store, as of the look-up by the steady clock; it has no token when the store has none."""

    token: Token | None
    as_of: float


class TokenVerifier:
    """Verifies tokens against a store, with a short-lived cache."""

    def __init__(
        self,
        store: TokenStore,
        *,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        timeout: float = _ANSWER_SECONDS,
        capacity: int = _CAPACITY,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """Verify against a store, which the caller closes.

        `wall` gives seconds since 1970 for expiry, `steady` steady seconds for the age of answers. A store that has not
        answered after `timeout` seconds is unavailable. At most `capacity` confirmed tokens, and as many refused texts,
        are cached.
        """
        self._store = store
        self._wall = wall
        self._steady = steady
        self._timeout = timeout
        self._capacity = capacity
        self._metrics = metrics
        # Two caches, so that a flood of invented tokens never evicts a confirmed one.
        self._confirmed: OrderedDict[SecretHash, _Answer] = OrderedDict()
        self._refused: OrderedDict[SecretHash, _Answer] = OrderedDict()
        self._look_ups: dict[SecretHash, asyncio.Task[_Answer | None]] = {}
        self._unavailable_until = self._retry_at = float("-inf")

    async def verify(self, text: str) -> Token | None:
        """The token of a text, which is neither stored nor logged.

        None means that the text is not a token, or that the token was never issued, has been revoked or has expired.
        TokensUnavailable is raised if that is not known.
        """
        if not is_token_text(text):
            return None
        secret = hash_of(text)
        answer = self._cached(secret, CACHE_SECONDS)
        self._metrics.cache("tokens", hit=answer is not None)
        if answer is None:
            answer = await self._fetch(secret) or self._cached(secret, GRACE_SECONDS)
        if answer is None:
            raise TokensUnavailable
        token = answer.token
        expired = token is not None and token.expires_at is not None and self._wall() >= token.expires_at
        return None if expired else token

    async def close(self) -> None:
        for task in tuple(self._look_ups.values()):
            task.cancel()
        await asyncio.gather(*self._look_ups.values(), return_exceptions=True)

    def _cached(self, secret: SecretHash, seconds: float) -> _Answer | None:
        answer = self._confirmed.get(secret)
        if answer is None:
            answer, seconds = self._refused.get(secret), min(seconds, CACHE_SECONDS)
        if answer is None or self._steady() - answer.as_of >= seconds:
            return None
        return answer

    async def _fetch(self, secret: SecretHash) -> _Answer | None:
        """The store's answer; None when it is unavailable, or not waited for as the cache has the token."""
        task = self._start_look_up(secret)
        if task is None:
            return None
        if self._cached(secret, GRACE_SECONDS) is None:
            return task.result() if await wait_for_store(task, remaining_seconds(_NO_LIMIT_SECONDS)) else None
        if self._is_unavailable:
            return None
        seconds = store_wait_budget()
        remaining = remaining_seconds(seconds)
        if await wait_for_store(task, remaining):
            return task.result()
        if remaining == seconds:
            self._mark_unavailable()
        return None

    def _start_look_up(self, secret: SecretHash) -> "asyncio.Task[_Answer | None] | None":
        """The one pending look-up of a secret; None when it is too early to retry an unavailable store."""
        task = self._look_ups.get(secret)
        if task is None:
            now = self._steady()
            if now < self._retry_at:
                return None
            if self._is_unavailable:
                self._retry_at = now + _RETRY_SECONDS
            # Other calls join it, so it must not end with the request that started it.
            with detached_from_request():
                task = self._look_ups[secret] = asyncio.create_task(self._look_up(secret))
            task.add_done_callback(lambda _: self._look_ups.pop(secret, None))
        return task

    @property
    def _is_unavailable(self) -> bool:
        return self._steady() < self._unavailable_until

    def _mark_unavailable(self) -> None:
        self._unavailable_until = self._steady() + _RETRY_SECONDS + self._timeout + _MARGIN_SECONDS

    async def _look_up(self, secret: SecretHash) -> _Answer | None:
        as_of = self._steady()
        try:
            with timed_store_call(self._metrics, "tokens", "find"):
                async with asyncio.timeout(self._timeout):
                    token = await self._store.find(secret)
        except (TokensUnavailable, TimeoutError) as error:
            _LOG.warning("the token store is unavailable: %s", str(error) or "timed out")
            self._retry_at = self._steady() + _RETRY_SECONDS
            self._mark_unavailable()
            return None
        self._unavailable_until = self._retry_at = float("-inf")
        answer = _Answer(token, as_of)
        cache, other = (self._refused, self._confirmed) if token is None else (self._confirmed, self._refused)
        other.pop(secret, None)
        cache[secret] = answer
        cache.move_to_end(secret)
        if len(cache) > self._capacity:
            cache.popitem(last=False)
        return answer
