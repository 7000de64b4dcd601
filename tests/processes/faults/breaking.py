"""The faults and what they happen to: each is in force inside its block, is seen to be so, and is undone."""

import asyncio
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import TransportError
from redis import Redis
from redis.exceptions import ResponseError

from index_mappings.generations import STAMP, alias_name
from indexer.sinks.opensearch.sink import OpenSearchSink
from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import Report
from tests.processes.endurance.worlds import COLOURS, write_world
from tests.processes.load.relay import CountingRelay, counting_relay
from tests.support.callers import Issued, in_redis, issue_in_redis
from tests.support.catalogues import build_into
from tests.support.real.node_build import NodeBuild
from tests.support.real.opensearch import OpenSearchNode, allocate_nodes
from tests.support.real.redis import RedisServer
from tests.support.served import until
from tests.support.service_process import Service

PREFIX: Final = "faults"
SHOPS: Final = 50
_EVERY_RECHECK: Final = 1_000_000

# Of a report: source, kind, shop, code and reason.
ReportKey = tuple[str, str, str, str | None, str]


@dataclass(frozen=True, slots=True)
class Ground:
    """The OpenSearch with a published catalogue, the Redis, relays to both, and services straight and relayed.

    Redis syncs its file before it answers; it holds tokens, quotas and reports.
    """

    node: OpenSearchNode
    redis: RedisServer
    straight: str
    relayed: str
    engine_relay: CountingRelay
    redis_relay: CountingRelay

    def issue(self) -> Issued:
        return issue_in_redis(self.redis.url, PREFIX)

    def stored_reports(self) -> tuple[Counter[ReportKey], Counter[ReportKey]]:
        """How often each report was stored, and how often a re-check of it is queued."""

        async def read() -> tuple[Counter[ReportKey], Counter[ReportKey]]:
            access = RedisAccess(self.redis.url)
            queue = open_queue(QueueSettings(kind="redis", redis=access, prefix=PREFIX, timeout=10.0))
            reports = Counter([_key_of(report) async for report in queue.export()])
            rechecks = Counter(_key_of(one.report) for one in (await queue.waiting(_EVERY_RECHECK)).rechecks)
            await queue.close()
            return reports, rechecks

        return asyncio.run(read())


def _key_of(report: Report) -> ReportKey:
    return report.source, report.kind, report.shop_id, report.code, report.reason


@contextmanager
def ground_in(folder: Path, build: NodeBuild, redis_program: str) -> Iterator[Ground]:
    """Start everything in a folder; yields it when both services are ready."""
    with ExitStack() as stack:
        node = _node(folder, build)
        stack.callback(node.stop)
        node.launch()
        redis = stack.enter_context(_redis(folder / "redis", redis_program))
        node.wait_until_green()
        sink = OpenSearchSink([node.url], PREFIX, letters=folder / "letters")
        build_into(sink, write_world(folder / "catalogue", COLOURS[0], SHOPS))
        sink.close()
        relays = [stack.enter_context(counting_relay(url)) for url in (node.url, redis.url)]
        urls = {"straight": (node.url, redis.url), "relayed": [relay.url for relay in relays]}
        services = [_service(folder / name, *reached) for name, reached in urls.items()]
        for service in services:
            stack.callback(service.stop)
            service.launch()
        for service in services:
            service.wait_until_ready()
        yield Ground(node, redis, services[0].base, services[1].base, *relays)


def _node(folder: Path, build: NodeBuild) -> OpenSearchNode:
    (allocation,) = allocate_nodes(folder / "opensearch", 1)
    # The shortest time that OpenSearch allows between two looks at its disk.
    return OpenSearchNode(build, allocation, settings={"cluster.info.update.interval": "10s"})


def _redis(folder: Path, program: str) -> RedisServer:
    """Redis, which a file that may not grow does not kill but fails a write of, as a full disk would."""
    folder.mkdir()
    wrapped = folder / "redis-server-on-a-bounded-disk"
    wrapped.write_text(
        f'#!/bin/sh\ntrap "" XFSZ\nexec "{program}" "$@" --appendfsync always\n',
        encoding="utf-8",
    )
    wrapped.chmod(0o700)
    return RedisServer(str(wrapped), folder, appendonly=True)


def _service(folder: Path, engine_url: str, redis_url: str) -> Service:
    settings = {"ENGINE": "opensearch", "OPENSEARCH_URLS": engine_url, "INDEX_PREFIX": PREFIX}
    return Service(folder, {**settings, **in_redis(redis_url, PREFIX)})


SLOW_S: Final = 2.0
_WATERMARK_BOUND_S: Final = 60.0
_EVERY_INDEX: Final = f"{PREFIX}-*"
_DISK: Final = "cluster.routing.allocation.disk"


def killed_engine(ground: Ground) -> AbstractContextManager[None]:
    """OpenSearch is killed; started again at the end."""
    return _during(ground.node.kill, ground.node.start)


def stopped_engine(ground: Ground) -> AbstractContextManager[None]:
    return _during(ground.node.pause, ground.node.resume, ground.node.wait_until_green)


def slow_engine(ground: Ground) -> AbstractContextManager[None]:
    """Each answer of OpenSearch is two seconds late."""
    return _slow(ground.engine_relay)


@contextmanager
def read_only_engine(ground: Ground) -> Iterator[None]:
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
            until(lambda: _is_flooded(client), bool, _WATERMARK_BOUND_S, 0.2)
            _assert_engine_refuses_writes(client)
            yield
        finally:
            _set_watermarks(client, "1b")
            until(lambda: not _is_flooded(client), bool, _WATERMARK_BOUND_S, 0.2)
            _set_watermarks(client, None)


def killed_redis(ground: Ground) -> AbstractContextManager[None]:
    """Redis is killed; started again at the end."""
    return _during(ground.redis.kill, ground.redis.start)


def stopped_redis(ground: Ground) -> AbstractContextManager[None]:
    return _during(ground.redis.process.pause, ground.redis.process.resume)


def slow_redis(ground: Ground) -> AbstractContextManager[None]:
    """Each answer of Redis is two seconds late."""
    return _slow(ground.redis_relay)


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


@contextmanager
def _slow(relay: CountingRelay) -> Iterator[None]:
    relay.delay = SLOW_S
    try:
        yield
    finally:
        relay.delay = 0.0


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
