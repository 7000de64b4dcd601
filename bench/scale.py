"""Searches on very many shops: `python -m bench.scale --shops 1000000`; part of `make soak`.

Builds invented shops in both engines, or takes what an earlier run built in the same folder, and times calls of one
character with exact totals, through the search backend and through the whole service over HTTP; and over HTTP names,
and suggest requests while names are typed. A wrong total, or a 99th percentile over the bound, ends with status 1.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.built_indices import BuildStats, BuiltIndex, Shops
from bench.letters import WrongTotalError, sample_names, time_backend, time_names, time_service, time_typing
from bench.typeahead.paced import percentile
from indexer.sinks.generation_typeahead import needed_space
from service.parts import open_search
from service.settings.service import Settings
from tests.support.service_process import serving

# By engine, for each shop: milliseconds of a build (docs/scale.md), and bytes of catalogue, state and indices at the
# peak, without the typeahead's local files.
_COSTS: Final = {"embedded": (0.6, 3_200), "opensearch": (0.44, 3_200)}
# How many names of shops are asked for.
_NAMES: Final = 500
_START: Final = "a service starts and is ready"


def forecast(engine: str, shops: int, directory: Path) -> str:
    """How long a build takes and how much disk it needs, as computed from measured ones."""
    milliseconds, size = _COSTS[engine]
    minutes, needed = shops * milliseconds / 60_000, (shops * size + needed_space(shops)) / 1_000_000_000
    free = shutil.disk_usage(directory).free / 1_000_000_000
    text = f"{engine}: {shops:,} shops take some {minutes:,.0f} minutes and {needed:,.1f} GB, of {free:,.1f} GB free"
    if needed > free:
        raise SystemExit(f"{text}: choose a larger disk with --directory")
    return text


def measure(built_index: BuiltIndex, shops: Shops, rounds: int, scratch: Path) -> dict[str, Sequence[float]]:
    """Milliseconds of the calls of one engine, ascending, by what is asked and how.

    Each character is asked for `rounds` times, each way.
    """
    totals, names = shops.totals(), sample_names(shops.catalogue(), _NAMES)
    files = {name: str(scratch / name) for name in ("token_file", "reports_file")}
    # Wider than a caller's bound, so that a slow answer is a figure and no failure.
    settings = Settings(**{**built_index.settings, **files, "request_timeout": "20"})  # type: ignore[arg-type]  # parsed
    backend = time_backend(open_search(settings), totals, rounds)
    began = time.monotonic()
    with serving(scratch / "service", {**built_index.service, "REQUEST_TIMEOUT": "20"}) as service:
        ready = (time.monotonic() - began) * 1000
        served = time_service(service.port, totals, rounds)
        return {
            "characters, search backend": backend.found,
            "characters that no shop has, search backend": backend.empty,
            "characters, HTTP": served.found,
            "characters that no shop has, HTTP": served.empty,
            "names, HTTP": time_names(service.port, names),
            "typing, HTTP": time_typing(service.port, names),
            _START: (ready,),
        }


def figures(measured: dict[str, tuple[BuildStats, dict[str, Sequence[float]]]]) -> Table:
    """The times as a table."""
    table = Table("engine", "asked", "calls", "p50 ms", "p99 ms", "max ms")
    for engine, (_, asked) in measured.items():
        for kind, times in asked.items():
            if times:
                cells = [f"{percentile(times, share):.1f}" for share in (0.5, 0.99, 1.0)]
                table.add_row(engine, kind, f"{len(times):,}", *cells)
    return table


def _builds(measured: dict[str, tuple[BuildStats, dict[str, Sequence[float]]]], count: int) -> Table:
    table = Table("engine", "build s", "shops/s", "indexer, MB of its own", "mapped MB", "index MB")
    for engine, (built, _) in measured.items():
        cells = (built.seconds, count / built.seconds, built.own_mb, built.mapped_mb, built.index_mb)
        table.add_row(engine, *(f"{cell:,.0f}" for cell in cells))
    return table


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=1_000_000, help="how many invented shops")
    options.add_argument("--engine", choices=("embedded", "opensearch", "both"), default="both")
    options.add_argument("--directory", type=Path, help="keeps indices for later runs; a temporary directory without")
    options.add_argument("--rounds", type=int, default=10, help="how often each character is asked for, each way")
    options.add_argument("--within", type=float, default=300.0, help="the bound of the 99th percentile, milliseconds")
    options.add_argument("--shards", type=int, default=1, help="primary shards in OpenSearch, 1, 2, 4 ...; only more")
    options.add_argument("--heap", default="3g", help="the heap of the OpenSearch node")
    return options.parse_args()


def main() -> int:
    """Build, measure and print; returns the exit status."""
    given = _options()
    console = Console()
    measured: dict[str, tuple[BuildStats, dict[str, Sequence[float]]]] = {}
    with TemporaryDirectory() as scratch:
        directory = given.directory or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        shops = Shops(directory, given.shops)
        engines = {"embedded": shops.embedded(), "opensearch": shops.opensearch(given.heap, given.shards)}
        for engine in engines if given.engine == "both" else (given.engine,):
            if not shops.is_built(engine):
                console.print(forecast(engine, given.shops, directory))
            with engines[engine] as built_index:
                try:
                    measured[engine] = built_index.built, measure(built_index, shops, given.rounds, Path(scratch))
                except WrongTotalError as error:
                    console.print(f"{engine}: {error}")
                    return 1
    console.print(_builds(measured, given.shops), figures(measured))
    console.print(f"Load average of the last minute: {os.getloadavg()[0]:.1f}; every total was the plain count's.")
    slow = [
        f"{engine}, {kind}"
        for engine, (_, asked) in measured.items()
        for kind, times in asked.items()
        if times and kind != _START and percentile(times, 0.99) > given.within
    ]
    if slow:
        console.print(f"Over {given.within:g} ms at the 99th percentile: {'; '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
