"""Shard files of a real node that were damaged while it was down: no short and no wrong answer (E3)."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from index_mappings.generations import index_name
from indexer.jobs.build import BuildOptions, build
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.state.state import States
from service.search.opensearch.engine import OpenSearchBackend
from tests.engines.integrity.world import UNAVAILABLE, Damage, answers, catalogue
from tests.support.real.opensearch import OpenSearchNode
from tests.support.real.plugin import NodeFactory

pytestmark = pytest.mark.opensearch

# What is answered from the index whose shard is damaged.
_FAILING: Final = {"coupons", "all coupons"}
_BOUND_S: Final = 60.0
_CHANCE: Final = random.Random(5)  # noqa: S311 - the same damage each time


def _flip(path: Path) -> None:
    Damage(path, _CHANCE.randrange(path.stat().st_size // 4, path.stat().st_size // 2), 3).do()


def _cut(path: Path) -> None:
    Damage(path, path.stat().st_size // 2, None).do()


def _shard_file(node: OpenSearchNode, client: OpenSearch, index: str) -> Path:
    """The largest file of a shard that holds documents."""
    uuid = client.indices.get_settings(index=index)[index]["settings"]["index"]["uuid"]
    files = (node.allocation.folder / "data").glob(f"**/indices/{uuid}/*/index/*")
    return max(files, key=lambda path: path.stat().st_size)


async def _settled(client: OpenSearch) -> None:
    """Wait until the node has started all shards that it can start."""
    async with asyncio.timeout(_BOUND_S):
        while True:
            try:
                health = await asyncio.to_thread(client.cluster.health)
            except OpenSearchException:
                health = None
            if health and health["status"] == "red" and not health["initializing_shards"]:
                return
            await asyncio.sleep(0.2)


@pytest.mark.slow
@pytest.mark.rule("E3")
async def test_a_node_that_starts_on_damaged_shard_files_gives_no_wrong_answer(
    opensearch_node: NodeFactory, tmp_path: Path
) -> None:
    node = opensearch_node()
    await asyncio.to_thread(node.start)
    with OpenSearch([node.url]) as client:
        worlds = [await _built(node, client, tmp_path, damage) for damage in (_flip, _cut, Path.unlink)]
        await asyncio.to_thread(node.stop)
        for world in worlds:
            world.damage(world.path)
        node.launch()
        await _settled(client)
    for world in worlds:
        await world.assert_no_wrong_answer()


@dataclass(frozen=True, slots=True)
class _World:
    """A published generation: its prefix, its backend and right answers, the file that is damaged, and how."""

    prefix: str
    backend: OpenSearchBackend
    right: dict[str, str]
    path: Path
    damage: Callable[[Path], None]

    async def assert_no_wrong_answer(self) -> None:
        expected = {name: UNAVAILABLE if name in _FAILING else answer for name, answer in self.right.items()}
        async with asyncio.timeout(_BOUND_S):
            # A node that has just started may not answer in time.
            while (found := await answers(self.backend)) != expected:
                assert all(answer in {self.right[name], UNAVAILABLE} for name, answer in found.items()), self.prefix
        await self.backend.close()


async def _built(node: OpenSearchNode, client: OpenSearch, folder: Path, damage: Callable[[Path], None]) -> _World:
    prefix = f"damaged-{damage.__name__.strip('_')}"
    sink = OpenSearchSink([node.url], prefix, shards=2)
    states = States(folder / prefix, sink.location)
    summary = await asyncio.to_thread(build, catalogue(folder, 60), sink, states, BuildOptions())
    sink.close()
    backend = OpenSearchBackend([node.url], prefix)
    right = await answers(backend)
    assert UNAVAILABLE not in right.values()
    index = index_name(prefix, "coupons", summary.stamp.generation)
    return _World(prefix, backend, right, _shard_file(node, client, index), damage)
