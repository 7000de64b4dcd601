"""One cluster of three nodes for all tests of this folder, and the catalogue that is built into it."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.processes.cluster.nodes import make_whole
from tests.support.catalogues import coupon, offer, program, shipping, shop, trust
from tests.support.real.node_build import NodeBuild
from tests.support.real.opensearch import OpenSearchCluster

SHOPS: Final = 2_000


@pytest.fixture(scope="package")
def nodes(node_build: NodeBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchCluster]:
    """Three nodes; which of them run is up to the tests. A test asks for `cluster`."""
    with OpenSearchCluster(node_build, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(nodes: OpenSearchCluster) -> OpenSearchCluster:
    """Three nodes that run and are green together."""
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
