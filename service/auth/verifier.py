"""Whether a token counts, asked for every call that carries one (Q1).

What the store said is believed for 1.5 s, so a revocation counts everywhere within 2 s, the look-up's own time
included. With the store away a token that it confirmed in the last ten minutes counts, without waiting: look-ups go on
in the background. The store is away when a look-up failed or took longer than a request has patience for. Of any other
token nothing is known then, and nothing known is not a refusal. A token is compared by the look-up of its hash alone,
never text by text.
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
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import detached_from_request, time_left
from service.runtime.store_waits import store_wait_budget, wait_for_store

BELIEVED_SECONDS: Final = 1.5
GRACE_SECONDS: Final = 600.0

# Shorter than what is left of the 2 s: who joins a look-up under way must not get an older truth than who starts one.
_ANSWER_SECONDS: Final = 1.0
# A look-up ends by its own time-out long before.
_NO_LIMIT_SECONDS: Final = 60.0
# While the store is away one look-up begins in this time.
_RETRY_SECONDS: Final = 0.5
# Without any traffic for a moment longer than a look-up takes, the next caller waits again: the store may be back.
_MARGIN_SECONDS: Final = 0.1
_CAPACITY: Final = 10_000
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Clock:
    """The two times that a verdict needs.

    Attributes:
        wall: seconds since 1970 in UTC; what expiry goes by.
        steady: seconds that never jump; what ages go by.
    """

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic


SYSTEM_CLOCK: Final = Clock()


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The token counts."""

    token: Token


@dataclass(frozen=True, slots=True)
class Refused:
    """It is no token, was never issued, has been revoked or has expired."""


@dataclass(frozen=True, slots=True)
class StoreAway:
    """Nothing is known: 503 where a token is required, none elsewhere."""


Verdict = Confirmed | Refused | StoreAway


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the store said.

    Attributes:
        token: None when it knows none.
        as_of: the steady time at which it was asked.
    """

    token: Token | None
    as_of: float


class TokenVerifier:
    """Confirms tokens against a store, with a short memory."""

    def __init__(
        self,
        store: TokenStore,
        clock: Clock = SYSTEM_CLOCK,
        *,
        timeout: float = _ANSWER_SECONDS,
        capacity: int = _CAPACITY,
        metrics: Metrics = NOTHING_MEASURED,
    ) -> None:
        """Verify against a store.

        Args:
            store: it belongs to the caller.
            clock: both times.
            timeout: seconds after which a store that has not answered is away.
            capacity: how many confirmed tokens, and how many refused texts, are remembered at most.
            metrics: are told of each look into the memory and of each look-up.
        """
        self._store = store
        self._clock = clock
        self._timeout = timeout
        self._capacity = capacity
        self._metrics = metrics
        # Apart, so that a flood of invented tokens never pushes out a confirmed one.
        self._confirmed: OrderedDict[SecretHash, _Answer] = OrderedDict()
        self._refused: OrderedDict[SecretHash, _Answer] = OrderedDict()
        self._asking: dict[SecretHash, asyncio.Task[_Answer | None]] = {}
        self._away_until = self._retry_at = float("-inf")

    async def verify(self, text: str) -> Verdict:
        """Judge a token's text; nothing is raised, and nothing of the text is kept or logged."""
        if not is_token_text(text):
            return Refused()
        secret = hash_of(text)
        answer = self._remembered(secret, BELIEVED_SECONDS)
        self._metrics.cache("tokens", hit=answer is not None)
        if answer is None:
            answer = await self._asked(secret) or self._remembered(secret, GRACE_SECONDS)
        if answer is None:
            return StoreAway()
        if answer.token is None or self._expired(answer.token):
            return Refused()
        return Confirmed(answer.token)

    async def close(self) -> None:
        """Give up the look-ups under way."""
        for task in tuple(self._asking.values()):
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _remembered(self, secret: SecretHash, seconds: float) -> _Answer | None:
        answer = self._confirmed.get(secret)
        if answer is None:
            answer, seconds = self._refused.get(secret), min(seconds, BELIEVED_SECONDS)
        if answer is None or self._clock.steady() - answer.as_of >= seconds:
            return None
        return answer

    async def _asked(self, secret: SecretHash) -> _Answer | None:
        """The store's answer; None when it is away, or is not waited for as memory knows the token."""
        task = self._look_up(secret)
        if task is None:
            return None
        if self._remembered(secret, GRACE_SECONDS) is None:
            return task.result() if await wait_for_store(task, time_left(_NO_LIMIT_SECONDS)) else None
        if self._is_away:
            return None
        seconds = store_wait_budget()
        left = time_left(seconds)
        if await wait_for_store(task, left):
            return task.result()
        if left == seconds:
            self._note_away()
        return None

    def _look_up(self, secret: SecretHash) -> "asyncio.Task[_Answer | None] | None":
        """The look-up of a secret, one at a time; None when it is too soon for another one while the store is away."""
        task = self._asking.get(secret)
        if task is None:
            now = self._clock.steady()
            if now < self._retry_at:
                return None
            if self._is_away:
                self._retry_at = now + _RETRY_SECONDS
            # Others join it: neither the deadline of its first caller nor that one's going away ends it.
            with detached_from_request():
                task = self._asking[secret] = asyncio.create_task(self._ask(secret))
            task.add_done_callback(lambda _: self._asking.pop(secret, None))
        return task

    @property
    def _is_away(self) -> bool:
        return self._clock.steady() < self._away_until

    def _note_away(self) -> None:
        self._away_until = self._clock.steady() + _RETRY_SECONDS + self._timeout + _MARGIN_SECONDS

    async def _ask(self, secret: SecretHash) -> _Answer | None:
        as_of = self._clock.steady()
        try:
            token = await self._found(secret)
        except (TokensUnavailable, TimeoutError) as error:
            _LOG.warning("the token store is away: %s", error or "timed out")
            self._retry_at = self._clock.steady() + _RETRY_SECONDS
            self._note_away()
            return None
        self._away_until = self._retry_at = float("-inf")
        answer = _Answer(token, as_of)
        kept, dropped = (self._refused, self._confirmed) if token is None else (self._confirmed, self._refused)
        dropped.pop(secret, None)
        kept[secret] = answer
        kept.move_to_end(secret)
        if len(kept) > self._capacity:
            kept.popitem(last=False)
        return answer

    async def _found(self, secret: SecretHash) -> Token | None:
        began, outcome = self._clock.steady(), "unavailable"
        try:
            async with asyncio.timeout(self._timeout):
                token = await self._store.find(secret)
            outcome = "ok"
            return token
        finally:
            self._metrics.store_call("tokens", "find", outcome, self._clock.steady() - began)

    def _expired(self, token: Token) -> bool:
        return token.expires_at is not None and self._clock.wall() >= token.expires_at
