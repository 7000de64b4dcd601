"""The service over three nodes, of which one at a time is killed or hangs: no answer is wrong or less than whole.

What can't be answered is the documented failure, and for less than fifteen seconds. The right answers are those of the
embedded engine for the same catalogue.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from service.app import create_app
from service.settings.service import Settings
from tests.processes.cluster.conftest import some_shops
from tests.processes.cluster.nodes import make_whole, manager, others
from tests.processes.cluster.readers import Answers, Readers, answers, reading
from tests.support.callers import issue
from tests.support.catalogues import build_into, write_catalogue_directory
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode
from tests.support.served import served
from tests.support.service_process import serving

PREFIX: Final = "read"
CLIENTS: Final = 4
BOUND_S: Final = 15.0
_OUTAGE_S: Final = 4.0
_HANGS_S: Final = 10.0
# How many nodes hang in turn: the manager in the short form.
_HANGING: Final = 3 if os.environ.get("SHOP_DIRECTORY_NODE_KILLS") == "all" else 1
LOG: Final = logging.getLogger(__name__)

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Service:
    """The service over the cluster, a token that counts, and the right answers."""

    base: str
    token: str
    known: Answers


@pytest.fixture
def service(cluster: OpenSearchCluster, tmp_path: Path) -> Iterator[Service]:
    """A published catalogue, served; and the same from the embedded engine, asked once."""
    catalogue = write_catalogue_directory(tmp_path / "catalogue", **some_shops())
    tokens = tmp_path / "service" / "tokens.sqlite"
    tokens.parent.mkdir()
    token = issue(tokens).text
    build_into(EmbeddedSink(tmp_path / "index"), catalogue)
    with served(create_app(Settings(data_dir=tmp_path / "index", token_file=tokens, request_timeout=20.0))) as base:
        known = answers(base, token)
    sink = OpenSearchSink(cluster.urls, PREFIX)
    build_into(sink, catalogue)
    settings = {"ENGINE": "opensearch", "OPENSEARCH_URLS": ",".join(cluster.urls), "INDEX_PREFIX": PREFIX}
    with serving(tokens.parent, settings) as running:
        yield Service(running.base, token, known)
    make_whole(cluster)
    for found in sink.generations():
        sink.drop(found.name)
    sink.close()


def assert_answers_go_on(readers: Readers, seconds: float) -> None:
    """Each client has right answers within this time."""
    before = readers.right
    time.sleep(seconds)
    assert all(later > earlier for earlier, later in zip(before, readers.right, strict=True)), readers.summary()


def in_turn(cluster: OpenSearchCluster, strike: Callable[[OpenSearchNode], None], most: int = 3) -> None:
    """Strike nodes, the elected manager first, and each time wait until the cluster is whole again."""
    first = manager(cluster)
    for node in [first, *others(cluster, [first])][:most]:
        strike(node)
        make_whole(cluster)


@pytest.mark.timeout(600)
@pytest.mark.rule("E3", "G1.replica")
def test_no_answer_is_wrong_while_one_node_after_the_other_is_killed(
    service: Service, cluster: OpenSearchCluster
) -> None:
    assert answers(service.base, service.token) == service.known

    def kill(node: OpenSearchNode) -> None:
        node.kill()
        assert_answers_go_on(readers, _OUTAGE_S)

    with reading(service.base, service.token, service.known, CLIENTS) as readers:
        in_turn(cluster, kill)
        assert_answers_go_on(readers, 2.0)
    LOG.info("killed: %s", readers.summary())
    assert [record.wrong for record in readers.records] == [[]] * CLIENTS
    assert all(record.longest < BOUND_S for record in readers.records), readers.summary()


@pytest.mark.timeout(600)
@pytest.mark.rule("E3")
def test_no_answer_is_wrong_while_a_node_hangs(service: Service, cluster: OpenSearchCluster) -> None:
    def hang(node: OpenSearchNode) -> None:
        node.pause()
        time.sleep(_HANGS_S)
        node.resume()
        LOG.info("hung: %s", readers.summary())

    with reading(service.base, service.token, service.known, CLIENTS) as readers:
        in_turn(cluster, hang, _HANGING)
        assert_answers_go_on(readers, 2.0)
    assert [record.wrong for record in readers.records] == [[]] * CLIENTS
    # The cluster itself does not miss a node before it has been silent for longer: some of its shards hang with it.
    assert all(record.longest < _HANGS_S + BOUND_S for record in readers.records), readers.summary()
