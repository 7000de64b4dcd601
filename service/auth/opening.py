"""Opens the configured token store. Only this module names the concrete stores; each is imported when it is opened."""

from enum import StrEnum
from pathlib import Path

from service.auth.protocol import TokenStore
from service.redis.access import RedisAccess


class TokenStoreKind(StrEnum):
    """Where tokens are stored."""

    SQLITE = "sqlite"
    REDIS = "redis"


def open_tokens(kind: TokenStoreKind, path: Path, redis: RedisAccess, prefix: str) -> TokenStore:
    """Open a store; it connects at the first call.

    Args:
        kind: the kind of the store.
        path: the file of the SQLite store.
        redis: how Redis is reached.
        prefix: the prefix of keys in Redis.
    """
    if kind is TokenStoreKind.SQLITE:
        from service.auth.sqlite import SqliteTokenStore

        return SqliteTokenStore(path)
    from service.auth.redis import RedisTokenStore

    return RedisTokenStore(redis, prefix)
