"""Redis as the store of services that are processes."""

import asyncio
from pathlib import Path

from service.auth.opening import TokenStoreKind, open_tokens
from service.auth.protocol import Token
from service.auth.secrets import hash_of, new_token_id, new_token_text
from service.redis.access import RedisAccess
from tests.support.callers import Issued


def in_redis(url: str, prefix: str) -> dict[str, str]:
    """The settings of services that share tokens, quotas and reports."""
    return {"REDIS_URL": url, "REDIS_PREFIX": prefix, "LIMITER": "redis", "TOKEN_STORE": "redis", "REPORTS": "redis"}


def issue_in_redis(url: str, prefix: str) -> Issued:
    """A new token in Redis."""
    issued = Issued(new_token_id(), new_token_text())

    async def store_token() -> None:
        store = open_tokens(TokenStoreKind.REDIS, Path(), RedisAccess(url), prefix)
        await store.issue(Token(issued.id, "test", "default", None), hash_of(issued.text))
        await store.close()

    asyncio.run(store_token())
    return issued
