"""`make bench`: indexing and doors, as ratios of one run."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench import doors, indexing


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shops", type=int, default=20_000, help="how many invented shops")
    options.add_argument("--requests", type=int, default=1_000, help="how many requests of each kind")
    given = options.parse_args()
    console = Console()
    with TemporaryDirectory() as directory:
        built = indexing.measure(Path(directory), given.shops)
        console.print(
            f"Indexing {built.shops:,} shops, embedded: {built.whole:.1f} s ({built.shops / built.whole:,.0f}/s)"
            f" for the whole job, of it {built.projection:.1f} s before the engine;"
            f" raw engine {built.raw:.1f} s, that is {built.raw / built.whole:.2f} of the whole."
        )
        console.print(_doors(Path(directory) / "whole", given.requests))


def _doors(index: Path, count: int) -> Table:
    table = Table("request", "median ms", "times the bare answer", title="One keep-alive connection, embedded engine")
    with doors.bare_asgi() as bare_port, doors.service(index) as port:
        bare = doors.median_ms(bare_port, doors.Request("GET", "/"), count)
        table.add_row("bare ASGI answer", f"{bare:.3f}", "1.0")
        for title, request in doors.requests().items():
            found = doors.median_ms(port, request, count)
            table.add_row(title, f"{found:.3f}", f"{found / bare:.1f}")
    return table


if __name__ == "__main__":
    main()
