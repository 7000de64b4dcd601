"""The two stores, and a Redis that a test may stop, pause, fill and kill."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.rules.reports.stores import RedisStore, SqliteStore, Store
from tests.support.real.redis import RedisServer


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with AsyncExitStack() as closing:
        yield SqliteStore(tmp_path, closing)


@pytest.fixture
async def redis_store(redis_url: str) -> AsyncIterator[RedisStore]:
    async with AsyncExitStack() as closing:
        store = RedisStore(redis_url, closing)
        closing.push_async_callback(store.clear)
        yield store


@pytest.fixture
async def cluster_store(redis_cluster: tuple[str, ...]) -> AsyncIterator[RedisStore]:
    """Keys of its own in the session's Redis Cluster; the cluster ends with the session, and its keys with it."""
    async with AsyncExitStack() as closing:
        yield RedisStore("redis://127.0.0.1", closing, cluster_nodes=redis_cluster)


@pytest.fixture(
    params=[
        "sqlite_store",
        pytest.param("redis_store", marks=pytest.mark.redis),
        pytest.param("cluster_store", marks=pytest.mark.redis_cluster),
    ]
)
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def own_redis(redis_program: str, tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "own-redis"
    folder.mkdir()
    with RedisServer(redis_program, folder, appendonly=True, options=("--appendfsync", "always")) as server:
        yield server
