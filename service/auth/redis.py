"""Tokens in Redis, for a service with many workers on many machines (Q1).

Each token is a Redis hash under the hash of its secret; another one leads from ids to hashes of secrets. All keys share
a hash tag, so that a token and its id are written and deleted together, also in a cluster.
"""

from typing import Final

from service.auth.protocol import SecretHash, Token, TokensUnavailable
from service.redis.access import RedisAccess
from service.redis.connection import RedisConnection, Script

_CONNECTIONS: Final = 8
# Tokens that one command reads when all are listed: a script blocks Redis, and 10,000 took longer than a call may.
_LISTED: Final = 500
_FIELDS: Final = ("id", "name", "quota_class", "expires_at")

# Scripts, not transactions: the cluster client runs a separate event loop for each command of a transaction.

# KEYS: ids, token. ARGV: the token's id, its secret's hash, then fields and values. HLEN fails before the first write
# if the key has another type.
_ISSUE: Final = Script("""
redis.call('HLEN', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HSET', KEYS[2], unpack(ARGV, 3))
""")

# KEYS: ids, token. ARGV: the token's id.
_REVOKE: Final = Script("""
redis.call('DEL', KEYS[2])
return redis.call('HDEL', KEYS[1], ARGV[1])
""")

# KEYS: tokens. Returns fields and values of each.
_ALL: Final = Script("""
local tokens = {}
for index, key in ipairs(KEYS) do
  tokens[index] = redis.call('HGETALL', key)
end
return tokens
""")


class RedisTokenStore:
    """A token store in Redis. Repeating any of its commands is safe."""

    def __init__(self, access: RedisAccess, prefix: str, timeout: float = 0.8) -> None:
        self._redis = RedisConnection(
            access, connections=_CONNECTIONS, timeout=timeout, purpose="tokens", unavailable=TokensUnavailable
        )
        self._tag = f"{{{prefix}:tokens}}"
        self._ids = f"{self._tag}:ids"

    async def find(self, secret_hash: SecretHash) -> Token | None:
        key = self._key(secret_hash.hexadecimal)
        stored = await self._redis.execute(lambda: self._redis.client.hgetall(key), retry=True)
        return _token(stored) if stored else None

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        expires_at = "" if token.expires_at is None else str(token.expires_at)
        values = (token.id, token.name, token.quota_class, expires_at)
        fields = [part for field in zip(_FIELDS, values, strict=True) for part in field]
        keys = [self._ids, self._key(secret_hash.hexadecimal)]
        await self._redis.run(_ISSUE, keys, [token.id, secret_hash.hexadecimal, *fields], retry=True)

    async def all(self) -> tuple[Token, ...]:
        hashes = await self._redis.execute(lambda: self._redis.client.hvals(self._ids), retry=True)
        keys = [self._key(each) for each in hashes]
        parts = [keys[start : start + _LISTED] for start in range(0, len(keys), _LISTED)]
        stored = [flat for part in parts for flat in await self._redis.run(_ALL, part, retry=True)]
        tokens = [_token(dict(zip(flat[::2], flat[1::2], strict=True))) for flat in stored if flat]
        return tuple(sorted(tokens, key=lambda token: (token.name, token.id)))

    async def revoke(self, token_id: str) -> bool:
        secret_hash = await self._redis.execute(lambda: self._redis.client.hget(self._ids, token_id), retry=True)
        if secret_hash is None:
            return False
        # Its reply does not count: repeated after a lost reply, it finds nothing any more.
        await self._redis.run(_REVOKE, [self._ids, self._key(secret_hash)], [token_id], retry=True)
        return True

    async def close(self) -> None:
        await self._redis.close()

    def _key(self, secret_hash: str) -> str:
        return f"{self._tag}:{secret_hash}"


def _token(stored: dict[str, str]) -> Token:
    try:
        token_id, name, quota_class, expires_at = (stored[field] for field in _FIELDS)
        return Token(token_id, name, quota_class, int(expires_at) if expires_at else None)
    except (KeyError, ValueError) as error:
        raise TokensUnavailable("Redis: a stored token can't be read") from error
