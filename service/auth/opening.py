"""Which token store there is: the one place that names the concrete ones, each imported when it is opened."""

from enum import StrEnum
from pathlib import Path

from service.auth.protocol import TokenStore
from service.redis.access import RedisAccess


class TokenStoreKind(StrEnum):
    """Where tokens are kept."""

    SQLITE = "sqlite"
    REDIS = "redis"


def open_tokens(kind: TokenStoreKind, path: Path, redis: RedisAccess, prefix: str) -> TokenStore:
    """Open a store; nothing is asked of it yet.

    Args:
        kind: which.
        path: the file of the SQLite store.
        redis: the way to Redis.
        prefix: what Redis keys begin with.
    """
    if kind is TokenStoreKind.SQLITE:
        from service.auth.sqlite import SqliteTokenStore

        return SqliteTokenStore(path)
    from service.auth.redis import RedisTokenStore

    return RedisTokenStore(redis, prefix)
