"""Gives tests the real parts that they ask for, by marker or by fixture, started at first use.

A test whose part cannot be had is deselected, with one loud line for each part in the summary; with
`--require-real` that is an error before anything runs. No test runs against a stand-in.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pytest

from tests.support.real.node_build import BuildError, NodeBuild
from tests.support.real.opensearch import OpenSearchNode, allocate_nodes
from tests.support.real.process import ProcessError
from tests.support.real.redis import ClusterOfRedis
from tests.support.real.sources import (
    LocalNodes,
    Missing,
    Source,
    find_chromium,
    find_dev_data,
    find_local_nodes,
    find_opensearch,
    find_postgres,
    find_redis,
    find_redis_program,
    find_server_programs,
)


class NodeFactory(Protocol):
    """Makes a node that does not run yet, in a folder and on ports of its own."""

    def __call__(self, *, heap: str = "512m", settings: Mapping[str, str] | None = None) -> OpenSearchNode: ...


_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Part:
    """A real part, and how a test says that it needs it: a marker or a fixture of this name."""

    title: str
    name: str
    fixture: str
    find: Callable[[], object]

    def is_needed_by(self, item: pytest.Item) -> bool:
        asked = getattr(item, "fixturenames", ())
        return item.get_closest_marker(self.name) is not None or self.fixture in asked


PARTS: Final = (
    Part("a real OpenSearch", "opensearch", "opensearch_url", find_opensearch),
    Part("OpenSearch nodes of their own", "node_build", "node_build", find_local_nodes),
    Part("a real Redis", "redis", "redis_url", find_redis),
    Part("a Redis Cluster of their own", "redis_cluster", "redis_cluster", find_redis_program),
    Part("Redis servers of their own", "redis_program", "redis_program", find_redis_program),
    Part("a real PostgreSQL", "postgres", "postgres_url", find_postgres),
    Part("a Chromium", "browser", "browser", find_chromium),
    Part("nginx, Caddy and systemd-analyze", "server_programs", "server_programs", find_server_programs),
    Part("the development data", "dev_data", "dev_data", find_dev_data),
)
_LEFT_OUT: Final = pytest.StashKey[list[str]]()
_NO_CONTAINER: Final = pytest.StashKey[list[str]]()
# By this name a worker of pytest-xdist reports what it left out.
_OUTPUT: Final = "left_out"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("real parts").addoption(
        "--require-real",
        action="store_true",
        help="fail before running when a real part that a selected test needs cannot be had",
    )


@pytest.hookimpl(trylast=True)  # after -m and -k: only what would run counts
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = config.stash.setdefault(_LEFT_OUT, [])
    for part in PARTS:
        needing = [item for item in items if part.is_needed_by(item)]
        found = part.find() if needing else None
        if isinstance(found, Missing):
            left_out.append(f"NOT RUN: {len(needing)} test(s) that need {part.title}: {found.reason}")
            config.hook.pytest_deselected(items=needing)
            items[:] = [item for item in items if not part.is_needed_by(item)]
    if left_out and config.getoption("--require-real"):
        if hasattr(config, "workerinput"):
            items.clear()  # an error here would only show the inside of pytest-xdist: its controller raises it
        else:
            raise pytest.UsageError("--require-real: " + "\n".join(left_out))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds the node's class path before any test, whose time limit a first download would break."""
    if not session.config.option.collectonly:
        _prepare(session.config, [part for part in PARTS if any(part.is_needed_by(item) for item in session.items)])


class _SharedAmongWorkers:
    """Hooks of pytest-xdist: several workers run the tests, and the process that they report to runs none."""

    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: object) -> None:
        """Builds the node's class path before the workers start, as two of them would build it at the same time."""
        del specs
        _prepare(config, PARTS)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ANN401 - a class of the library's inside
        """Stores what a worker left out, for the summary; every worker says the same."""
        del error
        left_out = node.config.stash.setdefault(_LEFT_OUT, [])
        left_out += [line for line in getattr(node, "workeroutput", {}).get(_OUTPUT, ()) if line not in left_out]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fails a run in which the workers ran nothing, as a part was missing that is required."""
        if session.config.stash.get(_LEFT_OUT, []) and session.config.getoption("--require-real"):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin("xdist") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_SharedAmongWorkers())


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, list[str]] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = session.config.stash.get(_LEFT_OUT, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_NO_CONTAINER, []):
        terminalreporter.write_line(line)
    for line in config.stash.get(_LEFT_OUT, []):
        terminalreporter.write_line(line, red=True, bold=True)


def _prepare(config: pytest.Config, parts: Iterable[Part]) -> None:
    no_container = config.stash.setdefault(_NO_CONTAINER, [])
    try:
        for part in parts:
            found = part.find()
            if isinstance(found, Source):
                found.prepare()
                if found.no_container is not None:
                    no_container.append(f"{part.title} is {found.origin}: {found.no_container}")
            elif isinstance(found, LocalNodes):
                found.build()
    except (BuildError, ProcessError) as failure:
        raise pytest.UsageError(f"the OpenSearch test node cannot be built: {failure}") from failure


@pytest.fixture(scope="session")
def opensearch_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real OpenSearch, one for the whole session: tests use index names of their own."""
    with _had(find_opensearch()).open(tmp_path_factory.mktemp("opensearch")) as url:
        yield url


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Redis, one for the whole session: tests use keys of their own."""
    with _had(find_redis()).open(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def redis_program() -> str:
    return str(_had(find_redis_program()))


@pytest.fixture(scope="session")
def redis_cluster(redis_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """`host:port` of each node of a cluster, one for the whole session: tests use keys of their own."""
    with ClusterOfRedis(redis_program, tmp_path_factory.mktemp("redis-cluster")) as cluster:
        yield cluster.addresses


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real PostgreSQL, one for the whole session: tests make databases of their own in it."""
    with _had(find_postgres()).open(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture(scope="session")
def node_build() -> NodeBuild:
    return _had(find_local_nodes()).build()


@pytest.fixture(scope="session")
def spare_node_of_session(node_build: NodeBuild, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchNode]:
    (allocation,) = allocate_nodes(tmp_path_factory.mktemp("spare"), 1)
    # Its clock for time limits ticks every 200 ms otherwise.
    settings = {"thread_pool.estimated_time_interval": "0"}
    with OpenSearchNode(node_build, allocation, settings=settings) as node:
        yield node


@pytest.fixture
def spare_node(spare_node_of_session: OpenSearchNode) -> OpenSearchNode:
    """A node that runs, to be stopped, killed and paused; the next test finds it running again, with its indices."""
    node = spare_node_of_session
    if node.process.running:
        node.resume()
        node.wait_until_green()
    else:
        node.start()
    return node


@pytest.fixture
def opensearch_node(node_build: NodeBuild, tmp_path: Path) -> Iterator[NodeFactory]:
    """Makes nodes that a test starts, stops and kills as it likes; they end with the test."""
    with ExitStack() as made:

        def make(*, heap: str = "512m", settings: Mapping[str, str] | None = None) -> OpenSearchNode:
            (allocation,) = allocate_nodes(Path(tempfile.mkdtemp(prefix="opensearch-", dir=tmp_path)), 1)
            node = OpenSearchNode(node_build, allocation, heap=heap, settings=settings)
            made.callback(node.stop)
            return node

        yield make


@pytest.fixture(scope="session")
def server_programs() -> Mapping[str, str]:
    """The paths of nginx, Caddy and systemd-analyze, by name."""
    return _had(find_server_programs())


@pytest.fixture(scope="session")
def dev_data() -> Path:
    return _had(find_dev_data())


def _had(found: _Found | Missing) -> _Found:
    if isinstance(found, Missing):
        pytest.fail(found.reason)
    return found
