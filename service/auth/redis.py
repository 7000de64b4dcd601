"""Tokens in Redis, for a service of many workers on many machines (Q1).

One hash a token under the hash of its secret, so that confirming one is one step, and one hash from ids to secrets'
hashes. All keys share a hash tag: a token and its id come and go in one step, in a cluster too.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from service.auth.protocol import SecretHash, Token, TokensUnavailable
from service.redis.access import RedisAccess
from service.redis.connection import RedisAway, RedisConnection

T = TypeVar("T")

_CONNECTIONS: Final = 8
_FIELDS: Final = ("id", "name", "quota_class", "expires_at")

# Scripts, as a transaction over a cluster's client runs an event loop of its own for each command of it.

# KEYS: ids, token. ARGV: the token's id, its secret's hash, then fields and values. A key of another type is touched
# before the first write.
_ISSUE: Final = """
redis.call('HLEN', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HSET', KEYS[2], unpack(ARGV, 3))
"""

# KEYS: ids, token. ARGV: the token's id. Returns whether there was one.
_REVOKE: Final = """
redis.call('DEL', KEYS[2])
return redis.call('HDEL', KEYS[1], ARGV[1])
"""

# KEYS: tokens. Returns fields and values of each.
_ALL: Final = """
local found = {}
for place, key in ipairs(KEYS) do
  found[place] = redis.call('HGETALL', key)
end
return found
"""


class RedisTokenStore:
    """A token store in Redis."""

    def __init__(self, access: RedisAccess, prefix: str, timeout: float = 0.8) -> None:
        """Name the server; nothing is asked of it yet.

        Args:
            access: the way to Redis.
            prefix: what all keys begin with.
            timeout: seconds that one answer may take.
        """
        self._redis = RedisConnection(access, connections=_CONNECTIONS, timeout=timeout, purpose="tokens")
        self._client: Any = self._redis.client
        self._issue, self._revoke, self._all = map(self._redis.script, (_ISSUE, _REVOKE, _ALL))
        self._tag = f"{{{prefix}:tokens}}"
        self._ids = f"{self._tag}:ids"

    async def find(self, secret_hash: SecretHash) -> Token | None:
        """The token of a secret."""
        stored = await self._asked(lambda: self._client.hgetall(self._key(secret_hash.hexadecimal)))
        return _token(stored) if stored else None

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        """Keep a new token."""
        expires_at = "" if token.expires_at is None else str(token.expires_at)
        values = (token.id, token.name, token.quota_class, expires_at)
        fields = [part for field in zip(_FIELDS, values, strict=True) for part in field]
        keys = [self._ids, self._key(secret_hash.hexadecimal)]
        await self._asked(lambda: self._issue(keys, [token.id, secret_hash.hexadecimal, *fields]))

    async def all(self) -> tuple[Token, ...]:
        """All tokens."""
        hashes = await self._asked(lambda: self._client.hvals(self._ids))
        stored = await self._asked(lambda: self._all([self._key(found) for found in hashes], [])) if hashes else []
        found = [_token(dict(zip(flat[::2], flat[1::2], strict=True))) for flat in stored if flat]
        return tuple(sorted(found, key=lambda token: (token.name, token.id)))

    async def revoke(self, token_id: str) -> bool:
        """Forget a token."""
        secret_hash = await self._asked(lambda: self._client.hget(self._ids, token_id))
        if secret_hash is None:
            return False
        return bool(await self._asked(lambda: self._revoke([self._ids, self._key(secret_hash)], [token_id])))

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.close()

    def _key(self, secret_hash: str) -> str:
        return f"{self._tag}:{secret_hash}"

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            # Every step may be done twice.
            return await self._redis.execute(ask, retry=True)
        except RedisAway as away:
            raise TokensUnavailable(f"Redis: {away}") from None


def _token(stored: dict[str, str]) -> Token:
    try:
        token_id, name, quota_class, expires_at = (stored[field] for field in _FIELDS)
        return Token(token_id, name, quota_class, int(expires_at) if expires_at else None)
    except (KeyError, ValueError) as error:
        raise TokensUnavailable("Redis: a stored token can't be read") from error
