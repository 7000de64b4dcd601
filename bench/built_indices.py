"""Indices of many invented shops, built by the operator's command and reused by later runs.

The cost of a build is stored alongside the index. Each schema version has its own folder, so no outdated index is
measured.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from opensearchpy import OpenSearch

from bench.commands import run
from bench.invented import invented_shops, write_invented
from bench.letters import plain_totals
from bench.opensearch_node import opensearch_node
from index_mappings.documents import SCHEMA_VERSION

_PREFIX: Final = "scale"
# Settings of a service that a benchmark may ask as often as it likes.
UNLIMITED: Final = {"QUOTA_ANONYMOUS": '{"reads": 1000000000, "suggest": 1000000000, "reports": 0}'}
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class BuildStats:
    """The cost of a build: the whole job, the peaks of the indexer's own and mapped memory, the size of all indices.

    The memory is that of the indexer, without the server of the engine.
    """

    seconds: float
    own_mb: float
    mapped_mb: float
    index_mb: float


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that was built, what its build took, and the settings by which indexer and service find it."""

    settings: Mapping[str, str]
    built: BuildStats

    @property
    def environment(self) -> dict[str, str]:
        """The settings as environment variables."""
        return environment_of(self.settings)

    @property
    def service(self) -> dict[str, str]:
        """The settings of a service on it for `tests.support.service_process`, without quotas and lines of calls."""
        return {**UNLIMITED, "LOG_LEVEL": "warning", **{name.upper(): value for name, value in self.settings.items()}}


class Shops:
    """Invented shops in one folder: the catalogue, its expected totals, and the indices."""

    def __init__(self, directory: Path, count: int) -> None:
        """Name the folder for an index of `count` shops; nothing is built yet."""
        self._folder = directory / f"{count}-shops-v{SCHEMA_VERSION}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._count = count

    def catalogue(self) -> Path:
        """The catalogue, written at the first call."""
        catalogue = self._folder / "shops.ndjson"
        if not catalogue.exists():
            write_invented(catalogue.with_suffix(".new"), self._count).replace(catalogue)
        return catalogue

    def state(self, engine: str) -> Path:
        """The private directory of the indexer's state for an engine's index."""
        return self._folder / f"{engine}-state"

    def is_built(self, engine: str) -> bool:
        """Whether an earlier run has built an engine's index."""
        return (self._folder / f"{engine}.json").exists()

    def totals(self) -> dict[str, int]:
        """The plain counts of one-character queries."""
        return _stored(self._folder / "totals.json", lambda: plain_totals(invented_shops(self._count)))

    @contextmanager
    def embedded(self) -> Iterator[BuiltIndex]:
        """The embedded index."""
        index = self._folder / "embedded"
        settings = {"engine": "embedded", "data_dir": str(index)}
        yield BuiltIndex(settings, self._built("embedded", settings, lambda: size_mb(index)))

    @contextmanager
    def opensearch(self, heap: str, shards: int = 1) -> Iterator[BuiltIndex]:
        """The indices in a node that is stopped at the end; its data stay. `heap` is as `-Xmx` takes it.

        The index of shops is built with one primary shard, then split into as many as wanted.
        """
        with opensearch_node(self._folder / "opensearch", heap) as node:
            settings = {"engine": "opensearch", "opensearch_urls": node.url, "index_prefix": _PREFIX}
            built = self._built("opensearch", settings, lambda: _stored_mb(node.url))
            _split(node.url, shards)
            yield BuiltIndex(settings, built)

    def _built(self, name: str, settings: Mapping[str, str], size: Callable[[], float]) -> BuildStats:
        def build() -> dict[str, float]:
            # Each index has its own state: the state of another index is refused.
            state = {"state_dir": str(self.state(name))}
            command = ["shop_directory", "index", "build", "--catalogue", str(self.catalogue()), "--json"]
            done = run(command, environment_of({**settings, **state}))
            own, mapped = (mib * 1024**2 / _MEGABYTE for mib in (done.own_mib, done.mapped_mib))
            return asdict(BuildStats(done.seconds, own, mapped, size()))

        return BuildStats(**_stored(self._folder / f"{name}.json", build))


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as environment variables."""
    return {f"SHOP_DIRECTORY_{name.upper()}": value for name, value in settings.items()}


def _stored(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The values of a JSON file, which is written first if it is missing."""
    if not path.exists():
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(make()), encoding="utf-8")
        fresh.replace(path)
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return values


def size_mb(folder: Path) -> float:
    """The size of a folder's files in megabytes (10^6 bytes); a file with several names counts once."""
    found = (path.stat() for path in folder.rglob("*") if path.is_file())
    return sum({(one.st_dev, one.st_ino): one.st_size for one in found}.values()) / _MEGABYTE


def _stored_mb(url: str) -> float:
    with OpenSearch([url]) as client:
        stored: int = client.indices.stats(index=f"{_PREFIX}-*")["_all"]["total"]["store"]["size_in_bytes"]
        return stored / _MEGABYTE


def _split(url: str, shards: int) -> None:
    """Split the index of shops, whose name leads to its copy afterwards."""
    with OpenSearch([url], timeout=1_800) as client:
        ((name, index),) = client.indices.get(index=f"{_PREFIX}-shops-*").items()
        if int(index["settings"]["index"]["number_of_shards"]) == shards:
            return
        target = f"{_PREFIX}-shops-in-{shards}"
        client.indices.put_settings(index=name, body={"index.blocks.write": True})
        client.indices.split(
            index=name,
            target=target,
            body={
                "settings": {
                    "index.number_of_shards": shards,
                    "index.number_of_replicas": 0,
                    "index.blocks.write": None,
                }
            },
        )
        # The method of the client takes this timeout for its own.
        client.transport.perform_request("GET", f"/_cluster/health/{target}?wait_for_status=green&timeout=30m")
        # Each shard still has the files of all, with the documents of the others deleted. From segments of over 5 GB
        # these are removed by a merge into one only.
        client.indices.forcemerge(index=target, max_num_segments=1)
        aliases = {*index["aliases"], name} - {f"{_PREFIX}-shops-in-{count}" for count in range(shards)}
        added = [{"add": {"index": target, "alias": alias}} for alias in aliases]
        client.indices.update_aliases(body={"actions": [{"remove_index": {"index": name}}, *added]})
        client.indices.refresh(index=target)
