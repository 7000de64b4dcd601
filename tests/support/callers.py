"""Tokens as the operator issues and revokes them, and a search engine that must not be asked."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from service.auth.protocol import Token, TokenStore
from service.auth.redis import RedisTokenStore
from service.auth.secrets import hash_of, new_token_id, new_token_text
from service.auth.sqlite import SqliteTokenStore
from service.redis.access import RedisAccess
from service.search.protocol import Generations, Snapshot, TypeaheadState


@dataclass(frozen=True, slots=True)
class Issued:
    """A token: its id, which names it, and its text, which is the secret."""

    id: str
    text: str


def issue(path: Path, *, quota_class: str = "default", expires_at: int | None = None) -> Issued:
    """A new token in a file of tokens."""
    return _issued(SqliteTokenStore(path), quota_class, expires_at)


def issue_in_redis(url: str, prefix: str) -> Issued:
    """A new token in Redis."""
    return _issued(RedisTokenStore(RedisAccess(url), prefix))


def in_redis(url: str, prefix: str) -> dict[str, str]:
    """The settings of services, as processes, that share tokens, quotas and reports."""
    return {"REDIS_URL": url, "REDIS_PREFIX": prefix, "LIMITER": "redis", "TOKEN_STORE": "redis", "REPORTS": "redis"}


def _issued(store: TokenStore, quota_class: str = "default", expires_at: int | None = None) -> Issued:
    issued = Issued(new_token_id(), new_token_text())

    async def store_it() -> None:
        await store.issue(Token(issued.id, "test", quota_class, expires_at), hash_of(issued.text))
        await store.close()

    asyncio.run(store_it())
    return issued


def revoke(path: Path, issued: Issued) -> None:
    """Take a token back."""

    async def forget() -> None:
        store = SqliteTokenStore(path)
        assert await store.revoke(issued.id)
        await store.close()

    asyncio.run(forget())


class Untouchable:
    """A search engine that fails, and remembers it, as soon as anything is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def snapshot(self) -> Snapshot:
        return self._fail("snapshot")

    def current(self) -> None:
        """Nothing is available, and the engine is not asked for it."""

    def typeahead_state(self) -> TypeaheadState:
        return TypeaheadState("ready")

    async def refresh(self) -> Snapshot:
        return self._fail("refresh")

    async def generations(self) -> Generations:
        return self._fail("generations")

    async def close(self) -> None:
        """Nothing is held."""

    def _fail(self, question: str) -> NoReturn:
        self.asked.append(question)
        raise AssertionError(question)
