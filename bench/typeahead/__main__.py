"""The comparison: `python -m bench.typeahead --shops 100000`; writes a JSON report and prints the tables.

Needs two processor cores and wrk. The development data come from $SHOP_DIRECTORY_DEV_DATA, or ../shared/data.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console

from bench import mcp_cost, opensearch_overhead
from bench.opensearch_node import EngineMissingError
from bench.typeahead.bare import BareAsgi
from bench.typeahead.corpus import SEED
from bench.typeahead.findings import main_size
from bench.typeahead.inputs import WORKLOAD_SEED, inputs_of
from bench.typeahead.load import Load, LoadError, missing_tools
from bench.typeahead.ours import ours
from bench.typeahead.peers import PEERS
from bench.typeahead.report import page
from bench.typeahead.results import Claim, Report, Size, write
from bench.typeahead.run import Comparison, Procedure, described_settings, two_cores
from bench.typeahead.system import System
from tests.support.real.sources import Missing, find_dev_data

_SEEDS: Final = {"corpus": SEED, "workload": WORKLOAD_SEED}
_REST: Final = "get_shop, REST"


def main() -> int:
    """Measure, write and print; returns 1 if a system failed, else 0."""
    given = _options()
    # SIGTERM leaves the contexts of the servers, which ends them.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    console = Console(stderr=True, highlight=False)
    say = partial(console.print, soft_wrap=True)
    try:
        server_core, load_core = two_cores()
    except LoadError as error:
        raise SystemExit(str(error)) from error
    if reason := missing_tools():
        raise SystemExit(reason)
    found = find_dev_data()
    dev_data = None if isinstance(found, Missing) else found
    if dev_data is None:
        say(f"NO DEVELOPMENT DATA ({found}): plain invented shops only, and no figures of quality")
    load = Load(load_core, given.seconds, given.connections)
    procedure = Procedure(server_core, load, given.rounds, given.warm_up, not given.no_quality, given.apart, say)
    report = Report(
        _now(), _commit(), _machine(), described_settings(procedure, given.requests, given.heap), _SEEDS, ()
    )
    for shops in given.shops:
        with TemporaryDirectory() as scratch:
            size = _measured(given, procedure, shops, Path(scratch), dev_data)
        report = replace(report, made_at=_now(), sizes=(*report.sizes, size))
        _write(report, given.json)
    if not given.only and not given.no_tools:
        with TemporaryDirectory() as scratch:
            extra = _measure_others(given.directory or Path(scratch), main_size(report).shops, given.heap, say)
        report = replace(report, made_at=_now(), extra=extra)
        _write(report, given.json)
    print(page(report))
    return 1 if any(size.failed for size in report.sizes) else 0


def _measured(
    given: argparse.Namespace, procedure: Procedure, shops: int, scratch: Path, dev_data: Path | None
) -> Size:
    """One size, with a fresh set of systems."""
    procedure.say(f"{shops:,} shops")
    folder = (given.directory or scratch) / f"typeahead-{shops}"
    folder.mkdir(parents=True, exist_ok=True)
    inputs = inputs_of(folder, shops, given.requests, dev_data)
    node_core = procedure.load.core if given.node_apart else None
    who, bare = chosen(given.only, given.without, given.heap, node_core)
    return Comparison(procedure, folder, scratch, inputs).measure(who, shops, bare=bare)


def _measure_others(directory: Path, shops: int, heap: str, say: Callable[[str], None]) -> dict[str, tuple[Claim, ...]]:
    """Figures of the other benchmarks by title, those over OpenSearch only where a node can be started.

    They build their own plain invented shops. Each compares two ways to the same results by alternating requests.

    The directory stores their indices; `say` is called with each line of progress.
    """
    say(f"MCP and pages, embedded, {shops:,} shops")
    found = {f"MCP and pages, embedded, {shops:,} invented shops": tuple(_of_mcp(mcp_cost.measure(directory, shops)))}
    try:
        say(f"What the service adds to OpenSearch, {shops:,} shops")
        overhead = opensearch_overhead.measure(directory, shops, heap=heap)
    except EngineMissingError as missing:
        say(f"ABSENT {missing}")
        return found
    return found | {f"Over OpenSearch, {shops:,} invented shops": tuple(_of_overhead(overhead))}


def _of_mcp(costs: mcp_cost.Costs) -> Iterator[Claim]:
    yield Claim("get_shop over REST, p50 ms", costs.costs[_REST].p50_ms)
    yield Claim("get_shop over MCP 2026-07-28, times REST", costs.ratio("get_shop, MCP 2026-07-28", _REST), 1.4)
    yield Claim("get_shop over MCP 2025-11-25, times REST", costs.ratio("get_shop, MCP 2025-11-25", _REST), 1.6)
    for limit in (10, 100):
        above = costs.above(f"find_shop, {limit}", f"engine alone, {limit}")
        yield Claim(f"find_shop, a page of {limit}, ms above the engine alone", above, 1.5)
    yield Claim("find_shop, a page of 100, times a page of 10", costs.ratio("find_shop, 100", "find_shop, 10"), 2.0)


def _of_overhead(overhead: opensearch_overhead.Overhead) -> Iterator[Claim]:
    yield Claim("find_shop, a page of 10, p50 ms above the engine's query", overhead.find.added_ms, 1.5)
    yield Claim("find_shop, a page of 100, p50 ms above the engine's query", overhead.long_page.added_ms)
    yield Claim("find_shop, a page of 100, times a page of 10", overhead.of_pages, 2.0)


def _write(report: Report, path: Path | None) -> None:
    """Write the report, after every size, so that an interrupted run has its results."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(report, path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def chosen(only: Sequence[str], without: Sequence[str], heap: str, node_core: int | None) -> tuple[list[System], bool]:
    """The systems that take part, and whether the bare server does.

    `only` names systems, empty for all; `without` names systems to leave out; the others are as of `ours`.
    """
    every = [*ours(heap, node_core), *(peer() for peer in PEERS)]
    names = {BareAsgi.name, *(one.name for one in every)}
    if unknown := {*only, *without} - names:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    wanted = (set(only) or names) - set(without)
    if not wanted:
        raise SystemExit("no system is left to measure")
    return [one for one in every if one.name in wanted], BareAsgi.name in wanted


def _commit() -> str | None:
    completed = subprocess.run(["git", "rev-parse", "HEAD"], check=False, capture_output=True, text=True)  # noqa: S607 - from PATH
    return completed.stdout.strip() or None


def _machine() -> dict[str, str]:
    about = dict(
        line.split(":", 1) for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if ":" in line
    )
    model = next((value.strip() for name, value in about.items() if name.strip() == "model name"), platform.machine())
    memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "memory": f"{memory_gb:.0f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _names(text: str) -> list[str]:
    return text.split(",")


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, nargs="+", default=[100_000], help="how many invented shops; several")
    options.add_argument("--only", type=_names, default=[], help="names of systems, by commas; no others, no tools")
    options.add_argument("--without", type=_names, default=[], help="names of systems, by commas: all others")
    options.add_argument("--rounds", type=int, default=5, help="the best round counts")
    options.add_argument("--seconds", type=float, default=3.0, help="of each measurement of a round")
    options.add_argument("--connections", type=int, default=16, help="keep-alive connections that saturate a server")
    options.add_argument("--requests", type=int, default=20_000, help="in the workload, which is repeated")
    options.add_argument(
        "--warm-up", type=float, default=5.0, help="minimum seconds; extended while a system gets faster"
    )
    options.add_argument(
        "--directory", type=Path, help="stores the indices for later runs; a temporary directory without"
    )
    options.add_argument("--heap", default="1g", help="the heap of OpenSearch nodes")
    options.add_argument("--no-quality", action="store_true", help="leave the quality out")
    options.add_argument("--no-tools", action="store_true", help="leave out what MCP, pages and OpenSearch's way cost")
    options.add_argument("--apart", action="store_true", help="run one server after the other instead of all together")
    options.add_argument(
        "--node-apart", action="store_true", help="run the OpenSearch node on the load's core, not the service's"
    )
    options.add_argument("--json", type=Path, help="the file of the report")
    return options.parse_args()


if __name__ == "__main__":
    sys.exit(main())
