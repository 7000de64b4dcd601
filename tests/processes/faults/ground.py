"""What the faults happen to: one OpenSearch, one Redis, and two services on both, one of them through relays.

The service through the relays is for what only a relay can do; the other one has its parts as they are, so that a part
that is killed looks to it as killed parts look.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from indexer.sinks.opensearch.sink import OpenSearchSink
from service.redis.access import RedisAccess
from service.reports.opening import QueueSettings, open_queue
from service.reports.protocol import Report
from tests.processes.endurance.worlds import COLOURS, write_world
from tests.processes.faults.relay import Between, relays_to
from tests.support.callers import Issued, in_redis, issue_in_redis
from tests.support.catalogues import build_into
from tests.support.real.node_build import NodeBuild
from tests.support.real.opensearch import OpenSearchNode, allocate_nodes
from tests.support.real.redis import RedisServer
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
    engine_relay: Between
    redis_relay: Between

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
        relays = stack.enter_context(relays_to(node.url, redis.url))
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
