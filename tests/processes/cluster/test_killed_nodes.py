"""A node of three is killed or hangs during builds, changes and reads: they go on, and no answer is wrong.

A following job that is struck goes on as well, and what it took is there. The short form kills the elected manager,
then another node; SHOP_DIRECTORY_NODE_KILLS=all kills one at every point of a build. What can't be answered is the
documented failure, for less than fifteen seconds; right answers are those of the embedded engine.
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, TransportError

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import index_name
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.lease import holding
from indexer.sinks.opensearch.bulk_loading import BulkSender
from indexer.sinks.opensearch.generation import OpenSearchEditor, OpenSearchReader, OpenSearchWriter
from indexer.sinks.opensearch.sink import OpenSearchSink
from shop_directory.search.opensearch.nodes import connect
from tests.engines.following.followed import FollowedIndex
from tests.processes.cluster.conftest import in_turn, make_whole, some_shops
from tests.processes.load.plan import Answers, LoadResult, Plan, Question, Row, answered_alone, load
from tests.processes.load.questions import suggestion, tool
from tests.support.callers import issue
from tests.support.catalogues import build_into, shop, upsert, write_catalogue_directory
from tests.support.loopback import Forwarding, listening
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode
from tests.support.real.process import free_ports
from tests.support.served import get
from tests.support.service_process import serving

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


@pytest.mark.slow
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


@pytest.mark.slow
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


PREFIX: Final = "read"
CLIENTS: Final = 4
BOUND_S: Final = 15.0
_OUTAGE_S: Final = 4.0
_HANGS_S: Final = 10.0
# How many nodes are killed in turn, and how many hang: in the short form the manager and another one, and the manager.
_KILLED: Final = _NODES if _ALL else 2
_HANGING: Final = _NODES if _ALL else 1


def questions_of(token: str) -> tuple[Question, ...]:
    return (
        suggestion("q=lumen+4"),
        suggestion("q=lmuen"),
        tool("find_shop", {"query": "lumen 77"}, token),
        tool("find_shop", {"query": "larhc 12"}, token),
        tool("find_shop", {"query": "", "category": "light-1", "offset": 300, "limit": 50}, token),
        tool("find_shop", {"query": "lumen qqxx"}, token),
        tool("list_categories", {}, token),
        tool("get_shop", {"shop_domain": "l7.internal"}, token),
        tool("get_shop", {"shop_domain": "unknown.internal"}, token),
        tool("list_coupons", {"shop_domain": "l5.internal"}, token),
        tool("list_coupons", {}, token),
        tool("get_shipping_policy", {"shop_domain": "l14.internal"}, token),
        tool("get_trust", {"shop_domain": "l10.internal"}, token),
        tool("monetize_offer", {"offer_id": "o-s50"}, token),
        tool("resolve_checkout_url", {"offer_id": "o-s51"}, token),
        tool("resolve_conflict", {"from_shop_id": "s1", "to_shop_id": "s2"}, token),
    )


@dataclass(frozen=True, slots=True)
class Service:
    port: int
    questions: tuple[Question, ...]
    known: Answers

    @property
    def plan(self) -> Plan:
        return Plan((self.port,), self.questions, CLIENTS, pause=0.02)


@pytest.fixture(scope="module")
def service(nodes: OpenSearchCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A published catalogue, served to all tests; and the same from the embedded engine, asked before."""
    make_whole(nodes)
    tmp_path = tmp_path_factory.mktemp("reads")
    catalogue = write_catalogue_directory(tmp_path / "catalogue", **some_shops())
    tokens = tmp_path / "tokens.sqlite"
    questions = questions_of(issue(tokens).text)
    build_into(EmbeddedSink(tmp_path / "index"), catalogue)
    own = {"TOKEN_FILE": str(tokens), "REQUEST_TIMEOUT": "20"}
    with serving(tmp_path / "embedded", {**own, "DATA_DIR": str(tmp_path / "index")}) as embedded:
        known = answered_alone(embedded.port, questions)
    sink = OpenSearchSink(nodes.urls, PREFIX)
    build_into(sink, catalogue)
    settings = {"ENGINE": "opensearch", "OPENSEARCH_URLS": ",".join(nodes.urls), "INDEX_PREFIX": PREFIX}
    with serving(tmp_path / "service", {**settings, "TOKEN_FILE": str(tokens)}) as running:
        yield Service(running.port, questions, known)
    make_whole(nodes)
    for found in sink.generations():
        sink.drop(found.name)
    sink.close()


def assert_right_or_refused(result: LoadResult, known: Answers, longest: float, outages: Sequence[float]) -> None:
    """No answer is wrong, each question is refused for less than `longest`, and answers go on during each outage.

    `outages` are the times at which one of `_OUTAGE_S` began.
    """

    def is_right(row: Row) -> bool:
        return (row.status, row.mark) == known[row.question]

    refused_since: dict[int, float] = {}
    waits = [0.0]
    for row in sorted(result.rows, key=lambda row: row.at + row.seconds):
        if is_right(row):
            waits.append(row.at + row.seconds - refused_since.pop(row.question, row.at + row.seconds))
        else:
            assert (row.status, row.code, row.retry) == (503, "backend_unavailable", True), row
            refused_since.setdefault(row.question, row.at)
    assert (result.cut, refused_since) == ((), {})
    assert max(waits) < longest
    for began in outages:
        assert sum(is_right(row) for row in result.rows if began < row.at < began + _OUTAGE_S) > CLIENTS


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.rule("E3", "G1.replica")
def test_no_answer_is_wrong_while_one_node_after_the_other_is_killed(
    service: Service, cluster: OpenSearchCluster
) -> None:
    """Takes half a minute: two nodes die, each for four seconds, and each starts and copies what it lacks."""
    assert answered_alone(service.port, service.questions) == service.known
    outages: list[float] = []

    def kill(node: OpenSearchNode) -> None:
        node.kill()
        outages.append(time.monotonic())
        time.sleep(_OUTAGE_S)

    with load(service.plan) as making:
        strike_in_turn(cluster, kill, _KILLED)
        result = making.stopped()
    assert_right_or_refused(result, service.known, BOUND_S, outages)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.rule("E3")
def test_no_answer_is_wrong_while_a_node_hangs(service: Service, cluster: OpenSearchCluster) -> None:
    """Takes a quarter of a minute: a node hangs for ten seconds, which is longer than any request may take."""

    def hang(node: OpenSearchNode) -> None:
        node.pause()
        time.sleep(_HANGS_S)
        node.resume()

    with load(service.plan) as making:
        strike_in_turn(cluster, hang, _HANGING)
        result = making.stopped()
    # The cluster itself does not miss a node before it has been silent for longer: some of its shards hang with it.
    assert_right_or_refused(result, service.known, _HANGS_S + BOUND_S, ())


def strike_in_turn(cluster: OpenSearchCluster, strike: Callable[[OpenSearchNode], None], most: int) -> None:
    """Strike nodes, the elected manager first, each time until the cluster is whole again; and then have quiet."""
    for node in in_turn(cluster)[:most]:
        strike(node)
        make_whole(cluster)
    time.sleep(2.0)


TIMEOUT_S: Final = 0.5


@contextmanager
def node(status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server that gives everybody one answer; yields its URL and the paths it was asked for."""
    asked: list[str] = []

    class Handler(Forwarding):
        def through(self, body: bytes) -> None:  # noqa: ARG002 - as the base class has it
            asked.append(self.path)
            self.reply(status, json.dumps({"status": status}).encode())

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}", asked


@pytest.fixture
def gone() -> str:
    (port,) = free_ports(1)
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def hanging() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.rule("E3")
async def test_a_node_that_is_gone_costs_no_answer(gone: str) -> None:
    with node() as (url, asked):
        client = connect([gone, url], TIMEOUT_S)
        for _ in range(4):
            assert await client.info() == {"status": 200}
        assert asked == ["/"] * 4
        await client.close()


@pytest.mark.rule("E3")
async def test_nodes_that_are_all_gone_are_an_immediate_failure(gone: str) -> None:
    client = connect([gone, gone], TIMEOUT_S)
    started = time.monotonic()
    with pytest.raises(NoConnection):
        await client.info()
    assert time.monotonic() - started < TIMEOUT_S
    await client.close()


@pytest.mark.rule("E3")
async def test_a_node_that_hangs_costs_one_answer_in_time_and_is_left_out_then(hanging: str) -> None:
    with node() as (url, asked):
        client = connect([hanging, url], TIMEOUT_S)
        outcomes = []
        for _ in range(6):
            started = time.monotonic()
            try:
                outcomes.append((await client.info())["status"])
            except ConnectionTimeout:
                outcomes.append("no answer")
                assert time.monotonic() - started < 4 * TIMEOUT_S
        assert sorted(map(str, outcomes)) == ["200"] * 5 + ["no answer"]
        assert len(asked) == 5
        await client.close()


@pytest.mark.rule("E3")
async def test_a_node_that_has_failed_many_times_is_left_out_no_longer_than_one_that_failed_once(gone: str) -> None:
    client = connect([gone, gone], TIMEOUT_S)
    with pytest.raises(NoConnection):
        await client.info()
    pool = client.transport.connection_pool
    until = []
    for _ in range(8):
        pool.mark_dead(pool.resurrect(force=True), now=1_000.0)
        until.append(pool.dead.queue[0][0])
    assert set(until) == {1_005.0}
    await client.close()


@pytest.mark.rule("E3")
async def test_an_answer_is_an_answer_however_bad_and_no_other_node_is_asked() -> None:
    with node(503) as (bad, first), node(503) as (other, second):
        client = connect([bad, other], TIMEOUT_S)
        with pytest.raises(TransportError) as failure:
            await client.info()
        assert failure.value.status_code == 503
        assert first + second == ["/"]
        await client.close()


@pytest.mark.rule("E3")
async def test_a_client_that_asked_nothing_can_be_closed(gone: str) -> None:
    for urls in ([gone], [gone, gone]):
        client = connect(urls, TIMEOUT_S)
        await client.close()
        with pytest.raises(NoConnection):
            await client.info()
        await client.close()
