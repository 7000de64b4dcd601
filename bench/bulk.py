"""The speed of indexing into OpenSearch: the bulk loader and `helpers.parallel_bulk`, alternating in one run.

Both load the same shops; `python -m bench.bulk --help` lists the options.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.helpers import parallel_bulk
from rich.console import Console
from rich.table import Table

from bench.invented import invented_shops
from bench.opensearch_node import EngineMissingError, opensearch_node
from index_mappings.opensearch import mapping, settings, wire_document
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.opensearch.bulk_loading import BulkLoader, Pace

_INDEX: Final = "bench-bulk"
_RAW_THREADS: Final = 4  # the default of parallel_bulk
_MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of one way of loading, of all rounds, and the seconds of this process's own processor time."""

    seconds: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the seconds."""
        return statistics.median(self.seconds)


def documents(count: int) -> list[Any]:
    """That many invented public shops as documents."""
    public = (shop for shop in invented_shops(2 * count) if shop["visibility"] == "public")
    return [project_shop(ShopRecord.model_validate(next(public))) for _ in range(count)]


def measure(url: str, shops: list[Any], paces: Iterable[Pace], rounds: int, letters: Path) -> dict[str, Measured]:
    """Load the same shops in each way, alternately.

    Returns:
        By the name of the way: "raw, finished" is given documents that are finished already, "raw, from shops" makes
        them on the way as the loader does; then each pace.
    """
    client = OpenSearch([url], timeout=60, max_retries=0, pool_maxsize=_RAW_THREADS)
    finished = [wire_document(shop) for shop in shops]
    ways: dict[str, Callable[[], None]] = {
        "raw, finished": lambda: _raw(client, finished),
        "raw, from shops": lambda: _raw(client, (wire_document(shop) for shop in shops)),
    }
    for pace in paces:
        loader = BulkLoader(client, DeadLetters(letters), pace)
        name = (
            f"loader, {pace.chunk_documents} documents, {pace.chunk_bytes // _MEBIBYTE} MiB, {pace.requests} in flight"
        )
        ways[name] = partial(_loaded, loader, shops)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(_timed(client, way, len(shops)))
    client.close()
    return {name: Measured(*zip(*found, strict=True)) for name, found in times.items()}


def _timed(client: OpenSearch, way: Callable[[], None], count: int) -> tuple[float, float]:
    """Time one load into a fresh index, and make sure that all of it is there."""
    body = {"settings": {**settings("shops", shards=1, replicas=0), "refresh_interval": "-1"}}
    client.indices.create(index=_INDEX, body={**body, "mappings": mapping("shops")})
    try:
        started, processor = time.perf_counter(), time.process_time()
        way()
        spent = time.perf_counter() - started, time.process_time() - processor
        client.indices.refresh(index=_INDEX)
        if client.count(index=_INDEX)["count"] != count:
            raise RuntimeError("not every document arrived")
    finally:
        client.indices.delete(index=_INDEX)
    return spent


def _raw(client: OpenSearch, finished: Iterable[dict[str, Any]]) -> None:
    for _ in parallel_bulk(client, _actions(finished), thread_count=_RAW_THREADS):
        pass


def _actions(finished: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for values in finished:
        yield {"_op_type": "index", "_index": _INDEX, "_id": values["id"], "_source": values}


def _loaded(loader: BulkLoader, shops: list[Any]) -> None:
    if loader.load(_INDEX, shops).refused:
        raise RuntimeError("documents were refused")


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shops", type=int, default=50_000, help="how many invented shops")
    options.add_argument("--rounds", type=int, default=3, help="how often each way is taken")
    options.add_argument("--documents", type=int, nargs="+", default=[Pace().chunk_documents], help="sizes of chunks")
    options.add_argument("--mebibytes", type=int, nargs="+", default=[Pace().chunk_bytes // _MEBIBYTE])
    options.add_argument("--requests", type=int, nargs="+", default=[Pace().requests], help="requests in flight")
    options.add_argument("--url", help="a node that runs already; one is started without")
    given = options.parse_args()
    paces = [
        Pace(chunk_documents=most, chunk_bytes=size * _MEBIBYTE, requests=requests)
        for most, size, requests in product(given.documents, given.mebibytes, given.requests)
    ]
    shops = documents(given.shops)
    with TemporaryDirectory() as directory, _node(given.url, Path(directory)) as url:
        measured = measure(url, shops, paces, given.rounds, Path(directory) / "letters.ndjson")
    Console().print(_table(measured, given.shops))


@contextmanager
def _node(stated: str | None, directory: Path) -> Iterator[str]:
    """The URL of the given node, or of a node that is started."""
    if stated is not None:
        yield stated
        return
    try:
        with opensearch_node(directory, "2g") as node:
            yield node.url
    except EngineMissingError as missing:
        raise SystemExit(f"--url names no node, and {missing}") from missing


def _table(measured: dict[str, Measured], count: int) -> Table:
    table = Table(
        "way",
        "seconds",
        "documents/s",
        "own processor s",
        "of raw, finished",
        title=f"{count:,} shops, medians of {len(next(iter(measured.values())).seconds)} rounds",
    )
    raw = measured["raw, finished"].median
    for name, one in measured.items():
        cells = f"{one.median:.2f}", f"{count / one.median:,.0f}", f"{statistics.median(one.processor):.2f}"
        table.add_row(name, *cells, f"{raw / one.median:.2f}")
    return table


if __name__ == "__main__":
    main()
