"""Figures of the other benchmarks in the same run: the cost of MCP and of pages, and the overhead over OpenSearch.

They build their own plain invented shops. Each compares two ways to the same results by alternating requests.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench import mcp_cost, opensearch_overhead
from bench.opensearch_node import EngineMissingError
from bench.typeahead.results import Claim

_REST: Final = "get_shop, REST"


def measure_others(directory: Path, shops: int, heap: str, say: Callable[[str], None]) -> dict[str, tuple[Claim, ...]]:
    """Run both benchmarks; their figures by title, those over OpenSearch only where a node can be started.

    The directory stores their indices; `say` is called with each line of progress.
    """
    say(f"MCP and pages, embedded, {shops:,} shops")
    found = {f"MCP and pages, embedded, {shops:,} invented shops": tuple(_tools(mcp_cost.measure(directory, shops)))}
    try:
        say(f"What the service adds to OpenSearch, {shops:,} shops")
        overhead = opensearch_overhead.measure(directory, shops, heap=heap)
    except EngineMissingError as missing:
        say(f"ABSENT {missing}")
        return found
    return found | {f"Over OpenSearch, {shops:,} invented shops": tuple(_added(overhead))}


def _tools(costs: mcp_cost.Costs) -> Iterator[Claim]:
    yield Claim("get_shop over REST, p50 ms", costs.costs[_REST].p50_ms)
    yield Claim("get_shop over MCP 2026-07-28, times REST", costs.ratio("get_shop, MCP 2026-07-28", _REST), 1.4)
    yield Claim("get_shop over MCP 2025-11-25, times REST", costs.ratio("get_shop, MCP 2025-11-25", _REST), 1.6)
    for limit in (10, 100):
        above = costs.above(f"find_shop, {limit}", f"engine alone, {limit}")
        yield Claim(f"find_shop, a page of {limit}, ms above the engine alone", above, 1.5)
    yield Claim("find_shop, a page of 100, times a page of 10", costs.ratio("find_shop, 100", "find_shop, 10"), 2.0)


def _added(overhead: opensearch_overhead.Overhead) -> Iterator[Claim]:
    yield Claim("find_shop, a page of 10, p50 ms above the engine's query", overhead.find.added_ms, 1.5)
    yield Claim("find_shop, a page of 100, p50 ms above the engine's query", overhead.long_page.added_ms)
    yield Claim("find_shop, a page of 100, times a page of 10", overhead.of_pages, 2.0)
