"""The two stores of the counts of queries, each with nothing in it; a second handle is another worker's."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from secrets import token_hex

import pytest

from service.insights.protocol import InsightStore
from service.insights.redis import RedisInsights
from service.insights.sqlite import SqliteInsights
from service.redis.access import DEFAULT_REDIS, RedisAccess

Opener = Callable[[], InsightStore]


@pytest.fixture(
    params=[
        "embedded",
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("cluster", marks=pytest.mark.redis_cluster),
    ]
)
async def opener(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    access = DEFAULT_REDIS
    if request.param == "redis":
        access = RedisAccess(request.getfixturevalue("redis_url"))
    elif request.param == "cluster":
        access = RedisAccess(cluster_nodes=request.getfixturevalue("redis_cluster"))
    path, prefix = tmp_path / "insights.sqlite", f"test-{token_hex(4)}"
    async with AsyncExitStack() as closing:

        def opener() -> InsightStore:
            store = SqliteInsights(path) if request.param == "embedded" else RedisInsights(access, prefix)
            closing.push_async_callback(store.close)
            return store

        yield opener
        await opener().erase()
