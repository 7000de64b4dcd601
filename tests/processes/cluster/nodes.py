"""What tests ask of a cluster as a whole: who manages it, and that all of it is there again."""

import json
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.real.opensearch import START_BOUND_S, OpenSearchCluster, OpenSearchNode

_ANSWER_BOUND_S: Final = 20.0


def asked(node: OpenSearchNode, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """What a node answers to a GET."""
    connection = HTTPConnection(urlsplit(node.url).netloc, timeout=_ANSWER_BOUND_S)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def manager(cluster: OpenSearchCluster) -> OpenSearchNode:
    """The node that the others have elected."""
    ((row),) = asked(cluster.nodes[0], "/_cat/cluster_manager?format=json")
    (found,) = (node for node in cluster.nodes if node.place.name == row["node"])
    return found


def others(cluster: OpenSearchCluster, excepted: Sequence[OpenSearchNode]) -> list[OpenSearchNode]:
    """All nodes but these."""
    return [node for node in cluster.nodes if node not in excepted]


def make_whole(cluster: OpenSearchCluster) -> None:
    """Start the nodes that do not run, and wait until each of all sees a green cluster."""
    for node in cluster.nodes:
        if not node.process.running:
            node.launch()
    for node in cluster.nodes:
        node.wait_until_green(nodes=len(cluster.nodes), bound_s=START_BOUND_S)
