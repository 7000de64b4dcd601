"""Every test that asks for `tokens` runs on both stores, Redis alone and as a cluster."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.auth.opening import TokenStoreKind, open_tokens
from service.auth.protocol import TokenStore
from service.redis.access import DEFAULT_REDIS, RedisAccess
from tests.rules.auth.test_verifier import PATIENCE_S, StoreLocation, World


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("cluster", marks=pytest.mark.redis_cluster),
    ]
)
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StoreLocation:
    """Where a store of its own is; opened twice it is the same store."""
    prefix = f"test-{secrets.token_hex(6)}"
    path = tmp_path / "private" / "tokens.sqlite"
    if request.param == "sqlite":
        return TokenStoreKind.SQLITE, path, DEFAULT_REDIS, prefix
    if request.param == "cluster":
        nodes = request.getfixturevalue("redis_cluster")
        return TokenStoreKind.REDIS, path, RedisAccess(cluster_nodes=nodes), prefix
    return TokenStoreKind.REDIS, path, RedisAccess(request.getfixturevalue("redis_url")), prefix


@pytest.fixture
async def tokens(location: StoreLocation) -> AsyncIterator[TokenStore]:
    """An empty store; emptied at the end."""
    # On a busy machine an answer may take longer than a service waits.
    store = open_tokens(*location, timeout=PATIENCE_S)
    try:
        yield store
        for left in await store.all():
            await store.revoke(left.id)
    finally:
        await store.close()


@pytest.fixture
def world(tokens: TokenStore) -> World:
    return World(tokens)
