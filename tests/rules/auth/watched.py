"""A verifier on a real store that a test watches, under clocks that the test sets."""

import asyncio
from pathlib import Path

from service.auth.opening import TokenStoreKind
from service.auth.protocol import SecretHash, Token, TokenStore, TokensUnavailable
from service.auth.secrets import hash_of, new_token_text
from service.auth.verifier import TokenVerifier
from service.redis.access import RedisAccess
from tests.rules.limits.clocks import HandClock

# What `open_tokens` takes: opened twice it is the same store.
StoreLocation = tuple[TokenStoreKind, Path, RedisAccess, str]
WIDGET = Token("a1", "widget", "default", None)
REFUSED = "refused"
UNKNOWN = "unknown"


class WatchedStore:
    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self.asked = 0
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def find(self, secret_hash: SecretHash) -> Token | None:
        self.asked += 1
        await self.gate.wait()
        if self.away:
            raise TokensUnavailable("away")
        return await self._store.find(secret_hash)

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        await self._store.issue(token, secret_hash)

    async def all(self) -> tuple[Token, ...]:
        return await self._store.all()

    async def revoke(self, token_id: str) -> bool:
        return await self._store.revoke(token_id)

    async def close(self) -> None:
        await self._store.close()


class World:
    def __init__(self, store: TokenStore, *, capacity: int = 100) -> None:
        self.store = WatchedStore(store)
        self.wall, self.steady = HandClock(), HandClock(5_000)
        self.verifier = TokenVerifier(self.store, wall=self.wall, steady=self.steady, timeout=0.5, capacity=capacity)

    async def issue(self, token: Token = WIDGET) -> str:
        text = new_token_text()
        await self.store.issue(token, hash_of(text))
        return text

    async def verdict(self, text: str) -> Token | str:
        try:
            return await self.verifier.verify(text) or REFUSED
        except TokensUnavailable:
            return UNKNOWN

    def pass_seconds(self, seconds: float) -> None:
        self.wall.pass_seconds(seconds)
        self.steady.pass_seconds(seconds)
