"""A node of three is killed at a chosen point of a build: the build finishes, and what it publishes is the source.

A following job that is struck goes on as well, and what it took is there. The short form kills the elected manager,
then another node; SHOP_DIRECTORY_NODE_KILLS=all kills one at every point, each in its turn.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import index_name
from indexer.sinks.lease import holding
from indexer.sinks.opensearch.bulk_loading import BulkSender
from indexer.sinks.opensearch.generation import OpenSearchEditor, OpenSearchReader, OpenSearchWriter
from indexer.sinks.opensearch.sink import OpenSearchSink
from tests.engines.following.followed import FollowedIndex
from tests.processes.cluster.conftest import in_turn, make_whole, some_shops
from tests.support.catalogues import shop, upsert
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode
from tests.support.served import get

# A point is the n-th call of a method: the node dies while it runs.
KillPoint = tuple[type, str, int]
BUILDING: Final[dict[str, KillPoint]] = {
    "writing": (BulkSender, "send", 6),
    "sealing": (OpenSearchWriter, "seal", 1),
    "publishing": (OpenSearchSink, "publish", 1),
    "merging": (OpenSearchWriter, "merge", 1),
    "creating": (OpenSearchWriter, "create", 1),
    "beginning to write": (BulkSender, "send", 1),
    "verifying": (OpenSearchReader, "count_ids", 2),
    "reading back": (OpenSearchReader, "read", 1),
    "retiring": (OpenSearchSink, "retire", 1),
}
FOLLOWING: Final[dict[str, KillPoint]] = {
    "showing": (OpenSearchEditor, "show", 1),
    "writing changes": (OpenSearchEditor, "write", 1),
    "removing": (OpenSearchEditor, "remove_of_shops", 1),
    "committing": (OpenSearchEditor, "commit", 1),
}
_ALL: Final = os.environ.get("SHOP_DIRECTORY_NODE_KILLS") == "all"
_NODES: Final = 3
LOG: Final = logging.getLogger(__name__)
# Each node in its turn, each time at another point.
BUILDS: Final = [(at % _NODES, point) for at, point in enumerate(list(BUILDING)[: None if _ALL else 2])]
STEPS: Final = [(at % _NODES, point) for at, point in enumerate(list(FOLLOWING)[: None if _ALL else 1])]
_LIMIT_S: Final = 3_600 if _ALL else 600

pytestmark = pytest.mark.slow


@contextmanager
def struck(point: KillPoint, strike: Callable[[], None]) -> Iterator[threading.Event]:
    """Strike while a method runs; yields what says that it has happened."""
    owner, name, wanted = point
    real, calls, done = getattr(owner, name), count(1), threading.Event()

    @wraps(real)
    def running(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
        if next(calls) == wanted:
            done.set()
            threading.Thread(target=strike).start()
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, running)
        yield done


class Directory(FollowedIndex):
    def __init__(self, cluster: OpenSearchCluster, folder: Path) -> None:
        super().__init__(folder, OpenSearchSink(cluster.urls, "struck"), some_shops())
        self.cluster = cluster
        self._versions = count(1)

    def change(self, shop_id: str, visibility: str) -> None:
        number = shop_id.removeprefix("s")
        record = shop(
            f"Lumen {number}", f"l{number}.internal", id=shop_id, categories=["light-0"], visibility=visibility
        )
        self.append([upsert("shops", record, next(self._versions))])

    def follow(self) -> None:
        lease = self.sink.lease()
        with holding(lease, "follow", 20.0), self.follower(check=lease.check) as follower:
            follower.drain()

    def replicas(self, node: OpenSearchNode) -> set[str]:
        names = ",".join(index_name("struck", kind, self.live.generation) for kind in DOCUMENTS)
        found = get(node.url, f"/{names}/_settings").json
        return {index["settings"]["index"]["number_of_replicas"] for index in found.values()}


@pytest.fixture
def directory(cluster: OpenSearchCluster, tmp_path: Path) -> Iterator[Directory]:
    made = Directory(cluster, tmp_path)
    yield made
    make_whole(cluster)
    for found in made.sink.generations():
        made.sink.drop(found.name)
    made.sink.close()


@pytest.mark.timeout(_LIMIT_S)
@pytest.mark.rule("G1", "G1.verified", "G1.replica", "G2")
def test_a_build_finishes_although_a_node_is_killed(directory: Directory) -> None:
    """Takes half a minute: after each of two kills a node starts and the cluster copies what it lacks."""
    wanted = directory.rebuilt()
    before = directory.build().stamp.generation
    turns = in_turn(directory.cluster)
    for number, point in BUILDS:
        node = turns[number]
        with struck(BUILDING[point], node.kill) as happened:
            summary = directory.build()
        LOG.info(
            "killed %s while %s: %.1f s, restarts: %d", node.allocation.name, point, summary.seconds, summary.restarts
        )
        assert happened.is_set(), point
        assert not node.process.running, point
        live = directory.live
        assert (live.generation, live.generation == before) == (summary.stamp.generation, False), point
        (alive, _) = (other for other in directory.cluster.nodes if other is not node)
        assert directory.replicas(alive) == {"1"}, point
        assert directory.scan() == wanted, point
        before = live.generation
        make_whole(directory.cluster)
        assert directory.scan() == wanted, point


@pytest.mark.timeout(_LIMIT_S)
@pytest.mark.rule("G3")
def test_a_change_that_is_taken_while_a_node_dies_is_there_afterwards(directory: Directory) -> None:
    directory.build()
    turns = in_turn(directory.cluster)
    for place, (number, point) in enumerate(STEPS):
        node, shop_id = turns[number], f"s{7 * place}"
        directory.change(shop_id, "under_review")
        with struck(FOLLOWING[point], node.kill) as happened:
            directory.follow()
        assert happened.is_set(), point
        held = directory.scan()
        assert shop_id not in held["shops"], point
        assert held == directory.rebuilt(), point
        # The next ones come while it is still away.
        directory.change(shop_id, "public")
        directory.follow()
        held = directory.scan()
        assert shop_id in held["shops"], point
        assert held == directory.rebuilt(), point
        make_whole(directory.cluster)
        assert directory.scan() == held, point
