"""The cost of a tool call: `python -m bench.mcp_cost --shops 100000`.

Measures get_shop over REST and over both eras of MCP, and pages of find_shop compared with the engine alone. One
keep-alive connection sends the requests to a service in its own process. Kinds alternate in every round, so that other
work on the machine affects all of them.
"""

import argparse
import asyncio
import json
import socket
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.built_indices import Shops
from bench.commands import processor_seconds
from bench.invented import invented_shops
from bench.typeahead.paced import whole
from index_mappings.generations import Stamp
from shop_directory.search.embedded.engine import TantivyEngine
from shop_directory.search.engine import Page, SearchRequest
from shop_directory.search.planned_backend import PlannedBackend
from shop_directory.search.protocol import FindQuery
from tests.support.service_process import serving
from tests.support.wire import ABOUT, Era

ROUNDS: Final = 9
REQUESTS: Final = 200
_SHOPS: Final = 50
_QUERIES: Final = 12
_SMALL: Final = 10
_LARGE: Final = 100
_READ: Final = 65_536

Asked = tuple[Stamp, Sequence[SearchRequest]]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one kind of request: the median time from its first byte to the last one of the response.

    The mean processor time is that of the service, or of this process where it calls the engine directly.
    """

    p50_ms: float
    processor_ms: float


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one run by title, and the median time of each round in seconds."""

    costs: Mapping[str, Cost]
    rounds: Mapping[str, tuple[float, ...]]

    def ratio(self, title: str, to: str) -> float:
        """The ratio of the times of two kinds: the median over the rounds."""
        pairs = zip(self.rounds[title], self.rounds[to], strict=True)
        return statistics.median(one / other for one, other in pairs)

    def above(self, title: str, to: str) -> float:
        """The difference of the times of two kinds in milliseconds: the median over the rounds."""
        pairs = zip(self.rounds[title], self.rounds[to], strict=True)
        return statistics.median(one - other for one, other in pairs)


class Connection:
    """One keep-alive connection with little overhead of its own."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> None:
        """Send a request and read the whole response, which must be a success."""
        self._socket.sendall(request)
        answer = self._socket.recv(_READ)
        while not whole(answer):
            answer += self._socket.recv(_READ)
        body = answer.partition(b"\r\n\r\n")[2]
        if not answer.startswith(b"HTTP/1.1 200 ") or b'"isError":true' in body:
            raise RuntimeError(f"answered {body[:200]!r}")


class _RecordingEngine(TantivyEngine):
    """An engine that records its calls, so that they can be repeated."""

    def __init__(self, index: Path) -> None:
        super().__init__(index)
        self.asked: list[Asked] = []

    async def search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        self.asked.append((stamp, requests))
        return await super().search(stamp, requests)


class EngineAlone:
    """Repeats the engine calls of find_shop in this process."""

    def __init__(self, index: Path, loop: asyncio.Runner) -> None:
        """Open the index of a directory; `loop` runs the calls."""
        self._engine = _RecordingEngine(index)
        self._backend = PlannedBackend(self._engine)
        self._loop = loop

    def matches(self, query: str) -> int:
        """The number of shops that match a query."""
        return self._loop.run(self._find(query, 1))

    def asks(self, query: str, limit: int) -> Asked:
        """The engine call for a page that is not empty."""
        self._engine.asked.clear()
        self._loop.run(self._find(query, limit))
        # The live stamp's categories may come first.
        return self._engine.asked[-1]

    def ask(self, asked: Sequence[Asked]) -> list[float]:
        """Repeat the calls one after the other; returns the seconds of each."""

        async def times() -> list[float]:
            found = []
            for stamp, asks in asked:
                began = time.perf_counter()
                await self._engine.search(stamp, asks)
                found.append(time.perf_counter() - began)
            return found

        return self._loop.run(times())

    async def _find(self, query: str, limit: int) -> int:
        snapshot = await self._backend.snapshot()
        return (await snapshot.find(FindQuery(query, (), (), 0, limit))).total


def measure(directory: Path, count: int, *, rounds: int = ROUNDS, requests: int = REQUESTS) -> Costs:
    """Measure all kinds on the embedded engine.

    The directory holds the index, which is built if it is missing. `requests` are those for each kind and round; for
    find_shop a quarter.
    """
    shops = Shops(directory, count)
    public = [shop for shop in islice(invented_shops(count), 4 * _SHOPS) if shop["visibility"] == "public"]
    with TemporaryDirectory() as scratch, shops.embedded() as built_index, asyncio.Runner() as loop:
        index = Path(built_index.settings["data_dir"])
        raw = EngineAlone(index, loop)
        prefixes = dict.fromkeys(str(shop["name"])[:3].casefold() for shop in public)
        queries = list(islice((query for query in prefixes if raw.matches(query) >= _LARGE), _QUERIES))
        with serving(Path(scratch), built_index.service) as service:
            connection = Connection(service.port)
            kinds: dict[str, Callable[[int], list[float]]] = {
                title: _asker(connection, sent)
                for title, sent in _requests([shop["id"] for shop in public[:_SHOPS]], queries).items()
            }
            for limit in (_SMALL, _LARGE):
                asked = [raw.asks(query, limit) for query in queries]
                kinds[f"engine alone, {limit}"] = lambda number, asked=asked: raw.ask(  # type: ignore[misc]
                    list(islice(cycle(asked), number))
                )
            return _alternating(kinds, service.pid, rounds, requests)


def _alternating(kinds: Mapping[str, Callable[[int], list[float]]], pid: int, rounds: int, requests: int) -> Costs:
    numbers = {title: requests if title.startswith("get_shop") else max(1, requests // 4) for title in kinds}
    times: dict[str, list[list[float]]] = {title: [] for title in kinds}
    spent: dict[str, list[float]] = {title: [] for title in kinds}
    for title, ask in kinds.items():
        ask(numbers[title])  # fills the caches and compiles the kernel
    for _ in range(rounds):
        for title, ask in kinds.items():
            clock = time.process_time if title.startswith("engine") else lambda: processor_seconds(pid)
            before = clock()
            times[title].append(ask(numbers[title]))
            spent[title].append((clock() - before) * 1000 / numbers[title])
    medians = {title: tuple(statistics.median(found) * 1000 for found in each) for title, each in times.items()}
    costs = {
        title: Cost(statistics.median(one for found in each for one in found) * 1000, statistics.median(spent[title]))
        for title, each in times.items()
    }
    return Costs(costs, medians)


def _asker(connection: Connection, sent: Sequence[bytes]) -> Callable[[int], list[float]]:
    requests = cycle(sent)

    def ask(number: int) -> list[float]:
        found = []
        for request in islice(requests, number):
            began = time.perf_counter()
            connection.ask(request)
            found.append(time.perf_counter() - began)
        return found

    return ask


def _requests(ids: Sequence[str], queries: Sequence[str]) -> dict[str, list[bytes]]:
    """The requests of each kind, as bytes."""
    calls = [{"name": "get_shop", "arguments": {"shop_domain": one}} for one in ids]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    modern = {"mcp-protocol-version": Era.STATELESS, "mcp-method": "tools/call", "mcp-name": "get_shop"}
    older = {"mcp-protocol-version": Era.HANDSHAKE}
    return {
        "get_shop, REST": [_post("/tool/get_shop", call["arguments"], {}) for call in calls],
        "get_shop, MCP 2026-07-28": [
            _post("/mcp", {**message, "params": {**call, "_meta": ABOUT}}, modern) for call in calls
        ],
        "get_shop, MCP 2025-11-25": [_post("/mcp", {**message, "params": call}, older) for call in calls],
        **{
            f"find_shop, {limit}": [_post("/tool/find_shop", {"query": query, "limit": limit}, {}) for query in queries]
            for limit in (_SMALL, _LARGE)
        },
    }


def _post(path: str, document: object, headers: Mapping[str, str]) -> bytes:
    body = json.dumps(document).encode()
    lines = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def cost_table(found: Costs) -> Table:
    """The costs as a table."""
    table = Table("request", "p50, ms", "processor, ms", title="One keep-alive connection, embedded engine")
    for title, cost in found.costs.items():
        table.add_row(title, f"{cost.p50_ms:.3f}", f"{cost.processor_ms:.3f}")
    rest = "get_shop, REST"
    pages = [f"find_shop, {limit}" for limit in (_SMALL, _LARGE)]
    above = ", ".join(f"{found.above(page, f'engine alone, {page.split()[-1]}'):.2f}" for page in pages)
    table.caption = (
        f"MCP over REST: {found.ratio('get_shop, MCP 2026-07-28', rest):.2f} and "
        f"{found.ratio('get_shop, MCP 2025-11-25', rest):.2f} times; find_shop above the engine: {above} ms; "
        f"a page of 100 over one of 10: {found.ratio(pages[1], pages[0]):.2f} times."
    )
    return table


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=20_000, help="how many invented shops")
    options.add_argument("--directory", type=Path, help="keeps the index for later runs; a temporary directory without")
    options.add_argument("--rounds", type=int, default=ROUNDS, help="each measures every kind")
    options.add_argument("--requests", type=int, default=REQUESTS, help="of each kind in a round")
    given = options.parse_args()
    with TemporaryDirectory() as temporary:
        found = measure(given.directory or Path(temporary), given.shops, rounds=given.rounds, requests=given.requests)
    Console(width=110).print(cost_table(found))


if __name__ == "__main__":
    main()
