"""Starts real OpenSearch nodes and clusters as processes on loopback, and ends them in every way a test needs.

A node has the same ports and folder for its whole life, so that a restart finds its data at the same address.
"""

import http.client
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opensearchpy import OpenSearch

from tests.support.real.node_build import NodeBuild
from tests.support.real.process import Server, ServerProcess, Startable, free_ports

START_BOUND_S: Final = 120.0
_ANSWER_BOUND_S: Final = 5.0
_LOOPBACK: Final = "127.0.0.1"
_SETTINGS: Final = {
    "cluster.name": "shop-directory-tests",
    "network.host": _LOOPBACK,
    "http.host": _LOOPBACK,
    "http.type": "netty4",
    "transport.type": "netty4",
    "action.auto_create_index": "false",
    # A disk that other programs have filled says nothing about the tests.
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    # It would count garbage, which this collector leaves until the heap is full, and refuse requests.
    "indices.breaker.total.use_real_memory": "false",
}
_JVM: Final = (
    "-XX:+UseSerialGC",
    "--enable-native-access=ALL-UNNAMED",
    "-Dlog4j2.level=INFO",  # Log4j without a configuration file logs errors only
)
# Half the processor time of a start and of builds of a few shops, and slower over many: for all but what is measured.
_QUICK_START: Final = ("-XX:TieredStopAtLevel=1",)


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """A node's name, its folder (data, configuration and log) and its two loopback ports."""

    name: str
    folder: Path
    http_port: int
    transport_port: int


def allocate_nodes(folder: Path, count: int) -> tuple[NodeAllocation, ...]:
    """Returns names, folders below `folder` and free ports for that many nodes, `node-1` and so on."""
    names = [f"node-{number + 1}" for number in range(count)]
    ports = free_ports(2 * count)
    return tuple(
        NodeAllocation(name, folder / name, http_port, transport_port)
        for name, http_port, transport_port in zip(names, ports[:count], ports[count:], strict=True)
    )


class OpenSearchNode(Server):
    """One node; as a context it is started, green, and stopped at the end."""

    def __init__(
        self,
        build: NodeBuild,
        allocation: NodeAllocation,
        *,
        cluster: Sequence[NodeAllocation] = (),
        heap: str = "512m",
        settings: Mapping[str, str] | None = None,
        quick_start: bool = True,
        archive: Path | None = None,
    ) -> None:
        """Stores what starts it; nothing runs yet.

        `cluster` are the allocations of all nodes of its cluster, its own too; empty for a cluster of one. `heap` is as
        `-Xmx` takes it; `settings` are added to the usual ones or replace them. With `quick_start` the JVM compiles
        less, to be there sooner: not for what is measured. Into `archive` the JVM writes its classes when it stops;
        without, it reads those of the build.
        """
        self.allocation = allocation
        self.url = f"http://{_LOOPBACK}:{allocation.http_port}"
        own = {
            "path.home": str(allocation.folder),
            "node.name": allocation.name,
            "http.port": str(allocation.http_port),
            "transport.port": str(allocation.transport_port),
        }
        stated = {**_SETTINGS, **own, **_discovery(cluster), **(settings or {})}
        classes = f"-XX:SharedArchiveFile={build.archive}" if archive is None else f"-XX:ArchiveClassesAtExit={archive}"
        options = [f"-Xms{heap}", f"-Xmx{heap}", classes, *_JVM, *(_QUICK_START if quick_start else ())]
        jvm = [str(build.jdk.java), *options, "-cp", build.class_path, "OpenSearchNode"]
        command = [*jvm, *(f"{name}={value}" for name, value in stated.items())]
        self.process = ServerProcess(
            f"OpenSearch {allocation.name} at {self.url}", command, allocation.folder / "node.log"
        )

    def launch(self) -> None:
        (self.allocation.folder / "config").mkdir(parents=True, exist_ok=True)
        self.process.launch()

    def _begin(self) -> None:
        self.launch()
        self.wait_until_green()

    def wait_until_green(self, *, nodes: int = 1, bound_s: float = START_BOUND_S) -> None:
        """Waits until its cluster is green and has at least that many nodes.

        A lone node with an index that wants replicas is never green: give test indices `number_of_replicas: 0`.
        """
        self.process.wait_for(lambda: self._is_green(nodes), f"green with {nodes} node(s)", bound_s)

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def restart(self) -> None:
        self.stop()
        self.start()

    def _is_green(self, nodes: int) -> bool:
        connection = http.client.HTTPConnection(_LOOPBACK, self.allocation.http_port, timeout=_ANSWER_BOUND_S)
        try:
            connection.request("GET", f"/_cluster/health?wait_for_status=green&wait_for_nodes=ge({nodes})&timeout=1s")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def archive_classes(build: NodeBuild) -> None:
    """Makes the build's archive of classes, by a node that is started and stopped; does nothing where there is one."""
    if build.archive.is_file():
        return
    with tempfile.TemporaryDirectory(prefix="classes.", dir=build.archive.parent) as scratch:
        fresh = Path(scratch) / build.archive.name
        (allocation,) = allocate_nodes(Path(scratch), 1)
        with OpenSearchNode(build, allocation, archive=fresh) as node, OpenSearch(node.url) as client:
            _load_classes(client)
        if fresh.is_file():  # a JVM that writes none starts nodes too, in more time
            fresh.replace(build.archive)


def _load_classes(client: OpenSearch) -> None:
    properties = {"word": {"type": "keyword"}, "text": {"type": "text"}}
    body = {"settings": {"number_of_replicas": 0}, "mappings": {"properties": properties}}
    client.indices.create(index="loads", body=body)
    lines = [{"index": {"_id": "1"}}, {"word": "one", "text": "One"}]
    client.bulk(index="loads", body=lines, params={"refresh": "true"})
    query = {"bool": {"filter": [{"term": {"word": "one"}}]}}
    client.search(index="loads", body={"query": query, "sort": [{"word": "asc"}]})
    client.get(index="loads", id="1")
    client.indices.forcemerge(index="loads")
    client.indices.delete(index="loads")


class OpenSearchCluster(Startable):
    """Nodes that form one cluster; as a context they are started, green together, and stopped at the end."""

    def __init__(self, build: NodeBuild, folder: Path, *, size: int = 3, heap: str = "512m") -> None:
        """Chooses folders below `folder`; nothing runs yet. `heap` is each node's."""
        allocations = allocate_nodes(folder, size)
        self.nodes = tuple(
            OpenSearchNode(build, allocation, cluster=allocations, heap=heap) for allocation in allocations
        )

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(node.url for node in self.nodes)

    def _begin(self) -> None:
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_until_green(nodes=len(self.nodes))

    def stop(self) -> None:
        """Closes all nodes; does nothing about those that do not run."""
        for node in self.nodes:
            node.stop()


def _discovery(cluster: Sequence[NodeAllocation]) -> dict[str, str]:
    if len(cluster) <= 1:
        return {"discovery.type": "single-node"}
    return {
        "discovery.seed_hosts": ",".join(f"{_LOOPBACK}:{allocation.transport_port}" for allocation in cluster),
        "cluster.initial_cluster_manager_nodes": ",".join(allocation.name for allocation in cluster),
    }
