"""One cluster of three nodes for all tests of this folder, and the catalogue that is built into it."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.catalogues import coupon, offer, program, shipping, shop, trust
from tests.support.real.node_build import NodeBuild
from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode
from tests.support.served import get

SHOPS: Final = 2_000


@pytest.fixture(scope="package")
def nodes(node_build: NodeBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchCluster]:
    """Three nodes; which of them run is up to the tests. A test asks for `cluster`."""
    with OpenSearchCluster(node_build, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(nodes: OpenSearchCluster) -> OpenSearchCluster:
    make_whole(nodes)
    return nodes


def some_shops() -> dict[str, list[dict[str, Any]]]:
    """Some thousand shops of four categories, each with a coupon and an offer; something of each other type."""
    ids = [f"s{number}" for number in range(SHOPS)]
    return {
        "shops": [
            shop(f"Lumen {n * 7919 % 4001} Larch {n}", f"l{n}.internal", id=one, categories=[f"light-{n % 4}"])
            for n, one in enumerate(ids)
        ],
        "coupons": [coupon(f"SAVE{one}", one) for one in ids],
        "offers": [offer(f"o-{one}", one, url=f"https://l{n}.internal/new/{n}") for n, one in enumerate(ids)],
        "shipping": [shipping(one) for one in ids[::7]],
        "trust": [trust(one, "registrar", "R") for one in ids[::5]],
        "affiliate_programs": [program(one, "network") for one in ids[::50]],
    }


def in_turn(cluster: OpenSearchCluster) -> list[OpenSearchNode]:
    """The nodes in the order in which they are struck: the one that the others have elected as manager first."""
    ((row),) = get(cluster.nodes[0].url, "/_cat/cluster_manager?format=json").json
    return sorted(cluster.nodes, key=lambda node: node.allocation.name != row["node"])


def make_whole(cluster: OpenSearchCluster) -> None:
    """Start the nodes that do not run, and wait until each of all sees a green cluster."""
    for node in cluster.nodes:
        if not node.process.running:
            node.launch()
    for node in cluster.nodes:
        node.wait_until_green(nodes=len(cluster.nodes))
