"""The prototype against the embedded engine, in one run: sizes, answers and the time of searches (decision 37).

Builds invented shops in the embedded engine, or takes what an earlier run built in the same folder, and writes the
prototype's files next to them. Each search is asked of both, alternately; its time is the least of several, in
milliseconds of processor time. A different answer ends with status 1.
"""

import argparse
import asyncio
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.bitmaps.engine import BITMAPS, BitmapEngine, segment_of
from bench.bitmaps.writing import write_kind
from bench.built_indices import Shops, size_mb
from bench.invented import CATEGORIES
from index_mappings.embedded import COMMITTED, generation_directory
from indexer.projection import Projector
from indexer.state.state import State
from shop_directory.search.embedded.engine import TantivyEngine
from shop_directory.search.embedded.indices import read_live
from shop_directory.search.planned_backend import snapshot_of
from shop_directory.search.protocol import FindQuery, Snapshot

_SEED: Final = 20_261_128
_COUNTRIES: Final = ("DE", "AT", "FR", "GB", "US", "JP", "SE", "PL")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_NAMES: Final = 20_000
_PAGE: Final = 20


class Compared(NamedTuple):
    """The least milliseconds of each search of a class in both engines, and the searches answered differently."""

    embedded: list[float]
    bitmaps: list[float]
    different: list[FindQuery]


def write_bitmaps(state: Path, index: Path) -> float:
    """Write the prototype's files for the live generation, if they are missing; returns the processor seconds.

    Those of the projection, which every build needs, are left out.
    """
    stamp = read_live(index)
    folder = generation_directory(index, stamp.generation) / BITMAPS
    if folder.exists():
        return 0.0
    spent = 0.0
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    with TemporaryDirectory() as scratch:
        copied = shutil.copy(state / f"{stamp.generation}.sqlite", scratch)
        with State.open(Path(copied)) as opened:
            for projected in Projector(opened).all():
                documents = list(projected.documents())
                started = time.process_time()
                write_kind(projected.kind, documents, fresh / projected.kind)
                spent += time.process_time() - started
    fresh.rename(folder)
    return spent


def searches(catalogue: Path, count: int) -> Mapping[str, Sequence[FindQuery]]:
    """This many searches of each class."""
    chance = random.Random(_SEED)
    with catalogue.open(encoding="utf-8") as lines:
        names = [json.loads(line)["name"] for line in islice(lines, _NAMES)]

    def find(text: str, **filters: tuple[str, ...]) -> FindQuery:
        return FindQuery(text, filters.get("countries", ()), filters.get("categories", ()), 0, _PAGE)

    def part() -> str:
        name = chance.choice(names).replace(" ", "")
        start = chance.randrange(max(1, len(name) - 4))
        return str(name[start : start + chance.randint(3, 7)])

    def faceted(text: str, *categories: str) -> FindQuery:
        country = chance.choice(_COUNTRIES)
        return FindQuery(text, (country,), categories, 0, _PAGE, facets=("category", "country"))

    every = range(count)
    return {
        "names": [find(chance.choice(names)) for _ in every],
        "names, a country": [find(chance.choice(names), countries=(chance.choice(_COUNTRIES),)) for _ in every],
        "beginnings of names": [find(chance.choice(names)[: chance.randint(2, 6)]) for _ in every],
        "two words": [find(f"{chance.choice(names).split()[0]} {chance.choice(names)[:4]}") for _ in every],
        "parts of names": [find(part()) for _ in every],
        "two parts": [find(f"{part()} {part()}") for _ in every],
        "categories, a country, facets": [faceted(chance.choice(CATEGORIES)) for _ in every],
        "blank, both filters, facets": [faceted("", chance.choice(CATEGORIES)) for _ in every],
        "letters": [find(letter) for letter in _LETTERS],
    }


async def compare(snapshots: tuple[Snapshot, Snapshot], queries: Sequence[FindQuery], rounds: int) -> Compared:
    """Ask both engines."""
    least = [[float("inf")] * len(queries) for _ in snapshots]
    different = []
    for number in range(rounds):
        for place, query in enumerate(queries):
            answers = []
            for times, snapshot in zip(least, snapshots, strict=True):
                started = time.process_time_ns()
                answers.append(await snapshot.find(query))
                times[place] = min(times[place], (time.process_time_ns() - started) / 1e6)
            if not number and answers[0] != answers[1]:
                different.append(query)
    return Compared(least[0], least[1], different)


async def measure(index: Path, classes: Mapping[str, Sequence[FindQuery]], rounds: int) -> dict[str, Compared]:
    """Compare all classes of searches."""
    engines = TantivyEngine(index), BitmapEngine(index)
    try:
        stamp = await engines[0].live()
        embedded, bitmaps = [await snapshot_of(engine, stamp) for engine in engines]
        return {name: await compare((embedded, bitmaps), queries, rounds) for name, queries in classes.items()}
    finally:
        for engine in engines:
            await engine.close()


def figures(measured: Mapping[str, Compared]) -> Table:
    """The times as a table."""
    table = Table("searches", "embedded, mean / max ms", "bitmaps, mean / max ms", "ratio of means", "different")
    for name, found in measured.items():
        means = statistics.mean(found.embedded), statistics.mean(found.bitmaps)
        cells = [f"{mean:.2f} / {max(times):.2f}" for mean, times in zip(means, found[:2], strict=True)]
        table.add_row(name, *cells, f"{means[1] / means[0]:.2f}", str(len(found.different)))
    return table


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=100_000, help="how many invented shops")
    options.add_argument("--searches", type=int, default=40, help="how many searches of each class")
    options.add_argument("--rounds", type=int, default=5, help="how often each is asked")
    options.add_argument("--directory", type=Path, help="keeps all files; a temporary directory without")
    given = options.parse_args()
    with TemporaryDirectory() as temporary:
        shops = Shops(given.directory or Path(temporary), given.shops)
        with shops.embedded() as built:
            index = Path(built.settings["data_dir"])
            seconds = write_bitmaps(shops.state("embedded"), index)
            stamp = read_live(index)
            generation = generation_directory(index, stamp.generation)
            sizes = [size_mb(generation / folder) for folder in (COMMITTED, BITMAPS)]
            typeahead = segment_of(generation, stamp.typeahead).stat().st_size / 1e6
            measured = asyncio.run(measure(index, searches(shops.catalogue(), given.searches), given.rounds))
    console = Console()
    console.print(
        f"indices {sizes[0]:.0f} MB, bitmaps {sizes[1]:.0f} MB in {seconds:.1f} s; typeahead {typeahead:.0f} MB"
    )
    console.print(figures(measured))
    sys.exit(any(found.different for found in measured.values()))


if __name__ == "__main__":
    main()
