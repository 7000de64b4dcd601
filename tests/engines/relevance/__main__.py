"""`make relevance`: the table of both engines, on the development data."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from tests.engines.relevance.development import (
    Report,
    Wishes,
    embedded_engine,
    measure,
    measure_wishes,
    wishes_catalogue,
)
from tests.engines.relevance.typing import Typing, measure_typing
from tests.support.real.sources import Missing, find_dev_data, find_opensearch
from tests.support.worlds import opensearch_world


async def _reports(data: Path) -> dict[str, tuple[Report, Wishes, Typing]]:
    reports: dict[str, tuple[Report, Wishes, Typing]] = {}
    with TemporaryDirectory() as directory:
        catalogue = wishes_catalogue(data, Path(directory) / "wishes")
        async with embedded_engine(data / "dev-shops.ndjson", Path(directory) / "names") as backend:
            report = await measure(backend, data)
        async with embedded_engine(catalogue, Path(directory) / "categories") as backend:
            reports["embedded"] = report, await measure_wishes(backend, data), await measure_typing(backend, data)
    source = find_opensearch()
    if isinstance(source, Missing):
        print(f"OpenSearch is left out: {source.reason}", file=sys.stderr)
        return reports
    source.prepare()
    with TemporaryDirectory() as directory, source.open(Path(directory)) as url:
        catalogue = wishes_catalogue(data, Path(directory) / "wishes")
        async with opensearch_world(url, data / "dev-shops.ndjson") as backend:
            report = await measure(backend, data)
        async with opensearch_world(url, catalogue) as backend:
            reports["opensearch"] = report, await measure_wishes(backend, data), await measure_typing(backend, data)
    return reports


def _print(reports: dict[str, tuple[Report, Wishes, Typing]]) -> None:
    console = Console()
    for engine, (report, wishes, typing) in reports.items():
        for transport, qualities in (("/suggest", report.suggest), ("find_shop", report.find)):
            table = Table("kind", "queries", "success@1", "success@8", "MRR@10", title=f"{transport} on {engine}")
            for kind, found in qualities.items():
                figures = (f"{figure:.3f}" for figure in (found.success_1, found.success_8, found.mrr_10))
                table.add_row(kind, str(found.queries), *figures)
            console.print(table)
        console.print(f"Mean keystrokes until the target is among the first eight, {engine}: {report.keystrokes:.3f}")
        console.print(
            f"wishes, {engine}: of {wishes.queries}, {len(wishes.empty)} find nothing: {', '.join(wishes.empty)}"
        )
        console.print(f"the first shop of {len(wishes.wrong)} carries no right category: {', '.join(wishes.wrong)}")
        table = Table("names", "queries", "first", "among three", title=f"categories while typing on {engine}")
        for kind, names in typing.names.items():
            table.add_row(kind, str(names.queries), f"{names.first:.3f}", f"{names.three:.3f}")
        console.print(table)
        wrong = ", ".join(f"{kind} {mean:.2f}" for kind, mean in typing.wrong.items())
        console.print(f"Wrong categories shown a query, {engine}: {wrong}")


def main() -> None:
    """Measure and print; the exit code is 1 when there is no data, or when the engines differ."""
    data = find_dev_data()
    if isinstance(data, Missing):
        sys.exit(f"There is nothing to measure: {data.reason}")
    reports = asyncio.run(_reports(data))
    _print(reports)
    if len(set(map(repr, reports.values()))) > 1:
        sys.exit("The engines differ.")


if __name__ == "__main__":
    main()
