"""The faults: each is in force inside its block, is seen to be so, and is undone at its end as an operator would.

When a block ends the part itself is well again; that the service has noticed is for the test to find out.
"""

import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import TransportError
from redis import Redis
from redis.exceptions import ResponseError

from index_mappings.generations import STAMP, alias_name
from tests.processes.faults.ground import PREFIX, Ground

SLOW_S: Final = 2.0
_WATERMARK_BOUND_S: Final = 60.0
_EVERY_INDEX: Final = f"{PREFIX}-*"
_DISK: Final = "cluster.routing.allocation.disk"


def killed_engine(ground: Ground) -> AbstractContextManager[None]:
    """OpenSearch is killed; started again at the end."""
    return _during(ground.node.kill, ground.node.start)


def stopped_engine(ground: Ground) -> AbstractContextManager[None]:
    """OpenSearch takes connections and answers nothing."""
    return _during(ground.node.pause, ground.node.resume, ground.node.wait_until_green)


def slow_engine(ground: Ground) -> AbstractContextManager[None]:
    """Each answer of OpenSearch is two seconds late."""
    return ground.engine_relay.slow(SLOW_S)


@contextmanager
def read_only_engine(ground: Ground) -> Iterator[None]:
    """Indices and cluster are read-only."""
    with OpenSearch([ground.node.url]) as client:
        _set_read_only(client, blocked=True)
        try:
            _assert_engine_refuses_writes(client)
            yield
        finally:
            _set_read_only(client, blocked=None)


@contextmanager
def full_disk_engine(ground: Ground) -> Iterator[None]:
    """OpenSearch itself finds less space on its disk than its watermarks want, and finds enough again at the end."""
    with OpenSearch([ground.node.url]) as client:
        _set_watermarks(client, "1pb")
        try:
            _wait_until(lambda: _is_flooded(client), _WATERMARK_BOUND_S)
            _assert_engine_refuses_writes(client)
            yield
        finally:
            _set_watermarks(client, "1b")
            _wait_until(lambda: not _is_flooded(client), _WATERMARK_BOUND_S)
            _set_watermarks(client, None)


def killed_redis(ground: Ground) -> AbstractContextManager[None]:
    """Redis is killed; started again at the end."""
    return _during(ground.redis.kill, ground.redis.start)


def stopped_redis(ground: Ground) -> AbstractContextManager[None]:
    """Redis takes connections and answers nothing."""
    return _during(ground.redis.process.pause, ground.redis.process.resume)


def slow_redis(ground: Ground) -> AbstractContextManager[None]:
    """Each answer of Redis is two seconds late."""
    return ground.redis_relay.slow(SLOW_S)


@contextmanager
def full_disk_redis(ground: Ground) -> Iterator[None]:
    """Redis may not write more into its file: it ends itself rather than answer for what is not on disk."""
    redis = ground.redis
    size = max(path.stat().st_size for path in redis.folder.rglob("*.aof"))
    _, hard = resource.prlimit(redis.process.pid, resource.RLIMIT_FSIZE)
    # A few bytes more: what is written next is cut off in the middle.
    resource.prlimit(redis.process.pid, resource.RLIMIT_FSIZE, (size + 40, hard))
    try:
        yield
        assert not redis.process.running
        assert "Exiting" in redis.process.log.read_text(encoding="utf-8")
    finally:
        redis.kill()
        redis.start()


@contextmanager
def full_memory_redis(ground: Ground) -> Iterator[None]:
    """Redis has no memory left for another key, and evicts none."""
    with Redis.from_url(ground.redis.url) as client:
        client.config_set("maxmemory", 1)
        try:
            _assert_redis_refuses_writes(client)
            yield
        finally:
            client.config_set("maxmemory", 0)


@contextmanager
def read_only_redis(ground: Ground) -> Iterator[None]:
    """Redis is a read-only replica of a primary that is not there, as in the middle of a failover."""
    with Redis.from_url(ground.redis.url) as client, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # held and never listening: nobody else's server is asked
        client.replicaof("127.0.0.1", unused.getsockname()[1])
        try:
            _assert_redis_refuses_writes(client)
            yield
        finally:
            client.replicaof("NO", "ONE")


@contextmanager
def _during(begin: Callable[[], None], *ends: Callable[[], None]) -> Iterator[None]:
    begin()
    try:
        yield
    finally:
        for end in ends:
            end()


def _set_read_only(client: OpenSearch, *, blocked: bool | None) -> None:
    settings = (
        lambda: client.indices.put_settings(index=_EVERY_INDEX, body={"index.blocks.read_only": blocked}),
        lambda: client.cluster.put_settings(body={"persistent": {"cluster.blocks.read_only": blocked}}),
    )
    # The cluster's own block forbids to lift those of the indices.
    for change in settings if blocked else reversed(settings):
        change()


def _assert_engine_refuses_writes(client: OpenSearch) -> None:
    with pytest.raises(TransportError, match="cluster_block_exception"):
        client.index(index=alias_name(PREFIX, STAMP), id="probe", body={})


def _set_watermarks(client: OpenSearch, wanted: str | None) -> None:
    """Free space that every watermark wants; None for what they were before."""
    settings: dict[str, Any] = {f"{_DISK}.watermark.{level}": wanted for level in ("low", "high", "flood_stage")}
    settings[f"{_DISK}.threshold_enabled"] = None if wanted is None else True
    client.cluster.put_settings(body={"persistent": settings})


def _is_flooded(client: OpenSearch) -> bool:
    settings = client.indices.get_settings(index=alias_name(PREFIX, STAMP), params={"flat_settings": "true"})
    return any(one["settings"].get("index.blocks.read_only_allow_delete") == "true" for one in settings.values())


def _assert_redis_refuses_writes(client: Redis) -> None:
    with pytest.raises(ResponseError):
        client.set(f"{PREFIX}:probe", "1")


def _wait_until(true: Callable[[], bool], bound_s: float) -> None:
    until = time.monotonic() + bound_s
    while not true():
        assert time.monotonic() < until
        # Another process: there is nothing to be woken by.
        time.sleep(0.2)
