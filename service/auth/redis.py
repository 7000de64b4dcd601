"""Tokens in Redis, for a service of many workers on many machines (Q1).

One hash a token under the hash of its secret, so that confirming one is one step, and one hash from ids to secrets'
hashes. All keys share a hash tag: a token and its id come and go in one transaction, in a cluster too.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from service.auth.protocol import SecretHash, Token, TokensUnavailable

_CONNECTIONS: Final = 8
_FIELDS: Final = ("id", "name", "quota_class", "expires_at")


class RedisTokenStore:
    """A token store in Redis."""

    def __init__(self, url: str, prefix: str, timeout: float = 0.8) -> None:
        """Name the server; nothing is asked of it yet.

        Args:
            url: `redis://`, `rediss://` or `unix://`, with credentials where they are needed.
            prefix: what all keys begin with.
            timeout: seconds that one answer may take.
        """
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=timeout,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            # Once, for a connection that died idle; every step may be done twice.
            retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
            decode_responses=True,
        )
        self._redis = Redis.from_pool(pool)
        self._timeout = timeout
        self._tag = f"{{{prefix}:tokens}}"
        self._ids = f"{self._tag}:ids"

    async def find(self, secret_hash: SecretHash) -> Token | None:
        """The token of a secret."""
        async with self._answering():
            stored = await self._redis.hgetall(self._key(secret_hash.hexadecimal))
        return _token(stored) if stored else None

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        """Keep a new token."""
        expires_at = "" if token.expires_at is None else token.expires_at
        async with self._answering(), self._redis.pipeline(transaction=True) as steps:
            steps.hset(
                self._key(secret_hash.hexadecimal),
                mapping=dict(zip(_FIELDS, (token.id, token.name, token.quota_class, expires_at), strict=True)),
            )
            steps.hset(self._ids, token.id, secret_hash.hexadecimal)
            await steps.execute()

    async def all(self) -> tuple[Token, ...]:
        """All tokens."""
        async with self._answering(), self._redis.pipeline(transaction=False) as steps:
            for secret_hash in await self._redis.hvals(self._ids):
                steps.hgetall(self._key(secret_hash))
            found = [_token(stored) for stored in await steps.execute() if stored]
        return tuple(sorted(found, key=lambda token: (token.name, token.id)))

    async def revoke(self, token_id: str) -> bool:
        """Forget a token."""
        async with self._answering(), self._redis.pipeline(transaction=True) as steps:
            secret_hash = await self._redis.hget(self._ids, token_id)
            if secret_hash is None:
                return False
            steps.delete(self._key(secret_hash))
            steps.hdel(self._ids, token_id)
            await steps.execute()
            return True

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    def _key(self, secret_hash: bytes | str) -> str:
        return f"{self._tag}:{secret_hash!s}"

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except (RedisError, OSError) as error:
            # An error's own text may quote keys: only its kind is told.
            raise TokensUnavailable(f"Redis: {type(error).__name__}") from None


def _token(stored: dict[bytes | str, bytes | str]) -> Token:
    try:
        token_id, name, quota_class, expires_at = (str(stored[field]) for field in _FIELDS)
        return Token(token_id, name, quota_class, int(expires_at) if expires_at else None)
    except (KeyError, ValueError) as error:
        raise TokensUnavailable("Redis: a stored token can't be read") from error
