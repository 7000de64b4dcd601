"""Shard files of a real node that were damaged while it was down: no short and no wrong answer (E3)."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from index_mappings.generations import index_name
from indexer.jobs.build import BuildOptions, build
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.state.states import States
from service.search.opensearch.engine import OpenSearchBackend
from tests.engines.integrity.world import UNAVAILABLE, Damage, answers, catalogue
from tests.support.real.opensearch import OpenSearchNode
from tests.support.real.plugin import NodeFactory

pytestmark = pytest.mark.opensearch

_PREFIX: Final = "damaged"
# What is answered from the index whose shard is damaged.
_FAILING: Final = {"coupons", "all coupons"}
_BOUND_S: Final = 60.0
_CHANCE: Final = random.Random(5)  # noqa: S311 - the same damage each time


def _flip(path: Path) -> None:
    Damage(path, _CHANCE.randrange(path.stat().st_size // 4, path.stat().st_size // 2), 3).do()


def _cut(path: Path) -> None:
    Damage(path, path.stat().st_size // 2, None).do()


def _shard_file(node: OpenSearchNode, client: OpenSearch, kind: str, generation: str) -> Path:
    """The largest file of a shard that holds documents."""
    index = index_name(_PREFIX, kind, generation)
    uuid = client.indices.get_settings(index=index)[index]["settings"]["index"]["uuid"]
    files = (node.place.folder / "data").glob(f"**/indices/{uuid}/*/index/*")
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
@pytest.mark.parametrize("damage", [_flip, _cut, Path.unlink])
async def test_a_node_that_starts_on_damaged_shard_files_gives_no_wrong_answer(
    opensearch_node: NodeFactory, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    node = opensearch_node()
    await asyncio.to_thread(node.start)
    sink = OpenSearchSink([node.url], _PREFIX, shards=2)
    summary = await asyncio.to_thread(
        build, catalogue(tmp_path, 60), sink, States(tmp_path / "states", sink.location), BuildOptions()
    )
    sink.close()
    backend, client = OpenSearchBackend([node.url], _PREFIX), OpenSearch([node.url])
    right = await answers(backend)
    assert UNAVAILABLE not in right.values()
    path = _shard_file(node, client, "coupons", summary.stamp.generation)
    await asyncio.to_thread(node.stop)
    damage(path)
    node.launch()
    await _settled(client)
    expected = {name: UNAVAILABLE if name in _FAILING else answer for name, answer in right.items()}
    async with asyncio.timeout(_BOUND_S):
        # A node that has just started may not answer in time.
        while (found := await answers(backend)) != expected:
            assert all(answer in {right[name], UNAVAILABLE} for name, answer in found.items())
    client.close()
    await backend.close()
    await asyncio.to_thread(node.stop)
