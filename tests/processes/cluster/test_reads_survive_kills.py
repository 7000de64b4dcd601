"""The service over three nodes, of which one at a time is killed or hangs: no answer is wrong or less than whole.

What can't be answered is the documented failure, and for less than fifteen seconds. The right answers are those of the
embedded engine for the same catalogue.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from tests.processes.cluster.conftest import in_turn, make_whole, some_shops
from tests.processes.load.plan import Answers, LoadResult, Plan, Question, Row, answered_alone, load
from tests.processes.load.questions import suggestion, tool
from tests.support.callers import issue
from tests.support.catalogues import build_into, write_catalogue_directory
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode
from tests.support.service_process import serving

PREFIX: Final = "read"
CLIENTS: Final = 4
BOUND_S: Final = 15.0
_OUTAGE_S: Final = 4.0
_HANGS_S: Final = 10.0
# How many nodes hang in turn: the manager in the short form.
_HANGING: Final = 3 if os.environ.get("SHOP_DIRECTORY_NODE_KILLS") == "all" else 1

pytestmark = pytest.mark.slow


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


@pytest.mark.timeout(600)
@pytest.mark.rule("E3", "G1.replica")
def test_no_answer_is_wrong_while_one_node_after_the_other_is_killed(
    service: Service, cluster: OpenSearchCluster
) -> None:
    """Takes over half a minute: three nodes die, each for four seconds, and each starts and copies what it lacks."""
    assert answered_alone(service.port, service.questions) == service.known
    outages: list[float] = []

    def kill(node: OpenSearchNode) -> None:
        node.kill()
        outages.append(time.monotonic())
        time.sleep(_OUTAGE_S)

    with load(service.plan) as making:
        strike_in_turn(cluster, kill)
        result = making.stopped()
    assert_right_or_refused(result, service.known, BOUND_S, outages)


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


def strike_in_turn(cluster: OpenSearchCluster, strike: Callable[[OpenSearchNode], None], most: int = 3) -> None:
    """Strike nodes, the elected manager first, each time until the cluster is whole again; and then have quiet."""
    for node in in_turn(cluster)[:most]:
        strike(node)
        make_whole(cluster)
    time.sleep(2.0)
