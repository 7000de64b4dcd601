"""Every test that asks for `tokens` runs on both stores."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.auth.opening import TokenStoreKind, open_tokens
from service.auth.protocol import TokenStore
from tests.auth.watched import World


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.redis)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TokenStoreKind, Path, str, str]:
    """Where a store of its own is; opened twice it is the same store."""
    kind = TokenStoreKind(request.param)
    url = request.getfixturevalue("redis_url") if kind is TokenStoreKind.REDIS else "redis://127.0.0.1:1"
    return kind, tmp_path / "private" / "tokens.sqlite", url, f"test-{secrets.token_hex(6)}"


@pytest.fixture
async def tokens(place: tuple[TokenStoreKind, Path, str, str]) -> AsyncIterator[TokenStore]:
    """An empty store; emptied at the end."""
    store = open_tokens(*place)
    try:
        yield store
        for left in await store.all():
            await store.revoke(left.id)
    finally:
        await store.close()


@pytest.fixture
def world(tokens: TokenStore) -> World:
    return World(tokens)
