"""The overhead of the service over OpenSearch: `python -m bench.opensearch_overhead --shops N`.

The requests that the service sends to the node are sent to it directly, alternating with requests to the service, over
one keep-alive connection each. The figures are medians of the best of five rounds.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.built_indices import Shops
from bench.invented import invented_shops
from bench.opensearch_node import EngineMissingError
from bench.typeahead.inputs import perhaps_swapped
from shop_directory.search.opensearch.engine import OpenSearchEngine
from shop_directory.search.planned_backend import PlannedBackend, PlannedSnapshot
from shop_directory.search.protocol import FindQuery
from tests.support.service_process import serving

_SEED: Final = 20_261_121
_WARM_UP: Final = 100
_ROUNDS: Final = 5
_PAGE: Final = 10
_LONG_PAGE: Final = 100
_TIMEOUT_S: Final = 10.0
_JSON: Final = {"content-type": "application/json"}

# Path and query, and body.
Sent = tuple[str, bytes]
Asks = Callable[[HTTPConnection], object]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same queries without and with the service, as medians; `trips` are requests to the node for each query."""

    engine_ms: float
    service_ms: float
    trips: float

    @property
    def added_ms(self) -> float:
        """The overhead of the service."""
        return self.service_ms - self.engine_ms


@dataclass(frozen=True, slots=True)
class Overhead:
    """One run: find_shop in pages of 10, and in pages of 100 of the same queries."""

    find: Comparison
    long_page: Comparison

    @property
    def of_pages(self) -> float:
        """How many times as long a page of 100 takes as a page of 10."""
        return self.long_page.service_ms / self.find.service_ms


class Recorded(OpenSearchEngine):
    """An engine that records the requests that it sends."""

    def __init__(self, url: str, prefix: str) -> None:
        """Connect to one node."""
        super().__init__([url], prefix, _TIMEOUT_S)
        self.sent: list[Sent] = []

    async def _get(self, target: str, body: bytes, seconds: float) -> dict[str, Any]:
        self.sent.append((target, body))
        return await super()._get(target, body, seconds)


async def recorded(
    url: str, prefix: str, query_set: Sequence[Callable[[PlannedSnapshot], Any]]
) -> list[tuple[Sent, ...]]:
    """The requests that each query sends to the engine, in order."""
    engine = Recorded(url, prefix)
    backend = PlannedBackend(engine)
    try:
        snapshot = await backend.snapshot()
        requests = []
        for ask in query_set:
            engine.sent.clear()
            await ask(snapshot)
            requests.append(tuple(engine.sent))
        return requests
    finally:
        await backend.close()


def measure(directory: Path, shops: int, count: int = 400, heap: str = "1g") -> Overhead:
    """Measure on a node of our own with that many invented shops; they are built at the first call."""
    # Two letters have a hundred shops, where there are shops enough.
    looked_for = [query[:2] for query in typed(shops, count) if len(query) > 1]
    with (
        TemporaryDirectory() as scratch,
        Shops(directory, shops).opensearch(heap) as built_index,
        serving(Path(scratch), built_index.service) as service,
        closing(_to(url := built_index.settings["opensearch_urls"])) as node,
        closing(_to(service.base)) as transport,
    ):
        prefix = built_index.settings["index_prefix"]
        found = {
            limit: asyncio.run(recorded(url, prefix, [_find(query, limit) for query in looked_for]))
            for limit in (_PAGE, _LONG_PAGE)
        }
        pages = {
            limit: _compared(node, transport, found[limit], [_page(query, limit) for query in looked_for])
            for limit in found
        }
        return Overhead(pages[_PAGE], pages[_LONG_PAGE])


def typed(shops: int, count: int) -> list[str]:
    """Beginnings of invented names, each once: of one to ten letters, one in five with two letters swapped."""
    chance = random.Random(_SEED)
    names = [str(shop["name"]) for shop in islice(invented_shops(shops), shops)]
    queries: dict[str, None] = {}
    while len(queries) < count:
        text = chance.choice(names)[: chance.randint(1, 10)].strip()
        queries[perhaps_swapped(chance, text)] = None
    return list(queries)


def _find(query: str, limit: int) -> Callable[[PlannedSnapshot], Any]:
    return lambda snapshot: snapshot.find(FindQuery(query, (), (), 0, limit))


def _page(query: str, limit: int) -> Asks:
    body = json.dumps({"query": query, "limit": limit}).encode()
    return lambda transport: _answered(transport, "POST", "/tool/find_shop", body)


def _compared(
    node: HTTPConnection, transport: HTTPConnection, noted: Sequence[tuple[Sent, ...]], asked: Sequence[Asks]
) -> Comparison:
    queries = list(zip(noted, asked, strict=True))
    trips = statistics.mean(len(sent) for sent in noted)
    _round(node, transport, queries[:_WARM_UP])
    rounds = [Comparison(*_round(node, transport, queries), trips) for _ in range(_ROUNDS)]
    # Other work on the machine affects the best round least.
    return min(rounds, key=lambda pair: pair.engine_ms + pair.service_ms)


def _round(
    node: HTTPConnection, transport: HTTPConnection, queries: Sequence[tuple[tuple[Sent, ...], Asks]]
) -> tuple[float, float]:
    """The median milliseconds of the engine alone and of the service."""
    alone: list[float] = []
    through: list[float] = []
    for number, (sent, ask) in enumerate(queries):
        both: list[tuple[list[float], Callable[[], object]]] = [
            (alone, partial(_engine_alone, node, sent)),
            (through, partial(ask, transport)),
        ]
        # The second one finds the engine warm, so the order alternates.
        for seconds, run in reversed(both) if number % 2 else both:
            started = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - started)
    return statistics.median(alone) * 1000, statistics.median(through) * 1000


def _engine_alone(node: HTTPConnection, sent: tuple[Sent, ...]) -> None:
    for target, body in sent:
        json.loads(_answered(node, "POST", target, body))


def _answered(connection: HTTPConnection, method: str, target: str, body: bytes | None = None) -> bytes:
    connection.request(method, target, body, _JSON if body else {})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{target} answered {answer.status}; a benchmark of failures says nothing")
    return content


def _to(url: str) -> HTTPConnection:
    return HTTPConnection(url.partition("://")[2], timeout=_TIMEOUT_S)


def table(overhead: Overhead) -> Table:
    """The figures as a table."""
    shown = Table("request", "engine alone, ms", "through the service, ms", "added, ms", "round trips")
    for title, pair in (("find_shop, a page of 10", overhead.find), ("find_shop, a page of 100", overhead.long_page)):
        shown.add_row(
            title,
            f"{pair.engine_ms:.2f}",
            f"{pair.service_ms:.2f}",
            f"{pair.added_ms:.2f}",
            f"{pair.trips:.2f}",
        )
    shown.caption = f"a page of 100 takes {overhead.of_pages:.2f} times as long as a page of 10"
    return shown


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shops", type=int, default=100_000, help="how many invented shops")
    options.add_argument("--requests", type=int, default=400, help="how many requests of each kind")
    options.add_argument("--directory", type=Path, default=Path("var/bench"), help="keeps the indices between runs")
    given = options.parse_args()
    console = Console()
    try:
        console.print(table(measure(given.directory, given.shops, given.requests)))
    except EngineMissingError as missing:
        console.print(str(missing))


if __name__ == "__main__":
    main()
