"""What tests ask of a cluster as a whole: who manages it, and that all of it is there again."""

from collections.abc import Sequence

from tests.support.real.opensearch import OpenSearchCluster, OpenSearchNode
from tests.support.served import get


def manager(cluster: OpenSearchCluster) -> OpenSearchNode:
    """The node that the others have elected."""
    ((row),) = get(cluster.nodes[0].url, "/_cat/cluster_manager?format=json").json
    (found,) = (node for node in cluster.nodes if node.allocation.name == row["node"])
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
        node.wait_until_green(nodes=len(cluster.nodes))
