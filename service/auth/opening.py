"""Opens the configured token store. Only this module names the concrete stores; each is imported when it is opened."""

from enum import StrEnum
from pathlib import Path
from typing import Final

from service.auth.protocol import TokenStore
from service.redis.access import RedisAccess

# A caller of the service waits for it with every request.
_REQUEST_SECONDS: Final = 0.8


class TokenStoreKind(StrEnum):
    """Where tokens are stored."""

    SQLITE = "sqlite"
    REDIS = "redis"


def open_tokens(
    kind: TokenStoreKind, path: Path, redis: RedisAccess, prefix: str, *, timeout: float = _REQUEST_SECONDS
) -> TokenStore:
    """Open a store; it connects at the first call. A call may take `timeout` seconds."""
    if kind is TokenStoreKind.SQLITE:
        from service.auth.sqlite import SqliteTokenStore

        return SqliteTokenStore(path, timeout)
    from service.auth.redis import RedisTokenStore

    return RedisTokenStore(redis, prefix, timeout)
