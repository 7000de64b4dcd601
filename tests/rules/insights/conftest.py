"""The two stores of the counts of queries, each with nothing in it; a second handle is another worker's."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from secrets import token_hex

import pytest

from service.insights.protocol import InsightStore
from service.insights.redis import RedisInsights
from service.insights.sqlite import SqliteInsights
from service.redis.access import RedisAccess

Opener = Callable[[], InsightStore]


@pytest.fixture
async def embedded_store(tmp_path: Path) -> AsyncIterator[Opener]:
    async with AsyncExitStack() as closing:

        def opener() -> InsightStore:
            store = SqliteInsights(tmp_path / "insights.sqlite")
            closing.push_async_callback(store.close)
            return store

        yield opener


@pytest.fixture
async def redis_store(redis_url: str) -> AsyncIterator[Opener]:
    prefix = f"test-{token_hex(4)}"
    async with AsyncExitStack() as closing:

        def opener() -> InsightStore:
            store = RedisInsights(RedisAccess(redis_url), prefix)
            closing.push_async_callback(store.close)
            return store

        yield opener
        await opener().erase()


@pytest.fixture
async def cluster_store(redis_cluster: tuple[str, ...]) -> AsyncIterator[Opener]:
    prefix = f"test-{token_hex(4)}"
    async with AsyncExitStack() as closing:

        def opener() -> InsightStore:
            store = RedisInsights(RedisAccess("redis://127.0.0.1", cluster_nodes=redis_cluster), prefix)
            closing.push_async_callback(store.close)
            return store

        yield opener


@pytest.fixture(
    params=[
        "embedded_store",
        pytest.param("redis_store", marks=pytest.mark.redis),
        pytest.param("cluster_store", marks=pytest.mark.redis_cluster),
    ]
)
def opener(request: pytest.FixtureRequest) -> Opener:
    found: Opener = request.getfixturevalue(request.param)
    return found
