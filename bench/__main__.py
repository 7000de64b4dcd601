"""`python -m bench`: indexing and transports; with --timing, whether times reveal shops under review.

`make bench` compares the typeahead with its peers (bench.typeahead).
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench import indexing, timing, transports

_PLANTED_SECONDS = 0.0001


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shops", type=int, default=20_000, help="how many invented shops")
    options.add_argument("--requests", type=int, default=1_000, help="how many requests of each kind")
    options.add_argument("--timing", action="store_true", help="compare the times of hidden and unknown shops instead")
    options.add_argument("--timings", type=int, default=5_000, help="how many calls of each side, for each tool")
    given = options.parse_args()
    console = Console()
    with TemporaryDirectory() as directory:
        if given.timing:
            console.print(_timing(Path(directory), given.timings))
            return
        built = indexing.measure("embedded", Path(directory), given.shops, rounds=1)
        console.print(indexing.speed_table([built]))
        console.print(_transports(Path(directory) / indexing.EMBEDDED_INDEX, given.requests))


def _transports(index: Path, count: int) -> Table:
    table = Table("request", "median ms", "times the bare answer", title="One keep-alive connection, embedded engine")
    with transports.bare_asgi() as bare_port, transports.service(index, transports.NO_QUOTA) as port:
        bare = transports.median_ms(bare_port, transports.Request("GET", "/"), count)
        table.add_row("bare ASGI answer", f"{bare:.3f}", "1.0")
        for title, request in transports.requests().items():
            found = transports.median_ms(port, request, count)
            table.add_row(title, f"{found:.3f}", f"{found / bare:.1f}")
    return table


def _timing(directory: Path, count: int) -> Table:
    title = f"{count:,} calls of each side; an AUC over {timing.ALLOWED} from 0.5 distinguishes them"
    table = Table("tool", "unknown, ms", "under review, ms", "AUC", "", "planted", "", title=title)
    for found, planted in zip(*timing.run(directory, count, _PLANTED_SECONDS), strict=True):
        cells = [f"{found.unknown_ms:.3f}", f"{found.hidden_ms:.3f}"]
        for one in (found, planted):
            cells += [f"{one.auc:.3f}", "apart" if one.distinguishable else "same"]
        table.add_row(found.tool, *cells)
    table.caption = f"Medians; planted: look-ups of shops under review take {_PLANTED_SECONDS * 1000:g} ms longer."
    return table


if __name__ == "__main__":
    main()
