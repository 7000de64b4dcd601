"""The cost of a suggest request by the number of segments: `python -m bench.typeahead.segments --shops 100000`.

The same shops in eight, four, two segments and one, in a temporary directory. Every request must have the same answer
from all of them. The times are processor time in one process, without HTTP: for each request the least of several
rounds, in which the numbers of segments take turns.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.typeahead.corpus import SEED, development_shops, mixed_corpus
from bench.typeahead.workload import TypedQuery, typing
from index_mappings.forms import query_forms
from indexer.jobs.generation_writing import batches
from indexer.projection import project_shop
from indexer.records.shop import ShopRecord, is_public
from shop_directory.typeahead.manifest import Covering, TypeaheadManifest
from shop_directory.typeahead.reading.typeahead import Typeahead, open_pool, open_typeahead
from shop_directory.typeahead.segment import segment_path
from shop_directory.typeahead.suggestions import SuggestQuery
from shop_directory.typeahead.writing.build import SegmentShop, TypeaheadBuild, segment_shop
from shop_directory.typeahead.writing.merging import Input, merge, weight
from shop_directory.typeahead.writing.segment_file import open_segment
from shop_directory.typeahead.writing.store import TypeaheadStore

_MOST: Final = 8
_LIMIT: Final = 8
_ROUNDS: Final = 5
_WARM: Final = 1_000


def _shops(dev_data: Path, count: int) -> Iterator[SegmentShop]:
    for line in mixed_corpus(dev_data, count):
        record = ShopRecord.model_validate({"source": "bench", **line})
        if is_public(record):
            yield segment_shop(project_shop(record))


def coverings(shops: Iterator[SegmentShop], count: int, directory: Path) -> dict[int, Covering]:
    """Write `count` shops as eight segments, and merge these in pairs. Returns all coverings by their length."""
    store = TypeaheadStore(directory)
    covering: Covering = ()
    for part in batches(shops, -(-count // _MOST)):
        with closing(TypeaheadBuild(store)) as build:
            for shop in part:
                build.add_shop(shop)
            covering += store.manifest(build.finish()).coverings[0]
    found = {len(covering): covering}
    while len(covering) > 1:
        covering = tuple(
            merge(directory, [Input(open_segment(segment_path(directory, use.name))) for use in pair])
            for pair in batches(covering, 2)
        )
        found[len(covering)] = covering
    return found


def timed(typeaheads: dict[int, Typeahead], requests: list[TypedQuery]) -> dict[int, list[float]]:
    """Microseconds of processor time of each request, by the number of segments."""
    queries = [SuggestQuery(query_forms(request.q), request.country, _LIMIT) for request in requests]
    least = {number: np.full(len(queries), np.inf) for number in typeaheads}
    for query in queries:
        answers = {number: typeahead.suggest(query) for number, typeahead in typeaheads.items()}
        if any(answer != answers[1] for answer in answers.values()):
            raise AssertionError(f"the answers differ by the number of segments: {query}")
    for _ in range(_ROUNDS):
        for number, typeahead in typeaheads.items():
            for query in queries[:_WARM]:
                typeahead.suggest(query)
            for position, query in enumerate(queries):
                begun = time.process_time_ns()
                typeahead.suggest(query)
                least[number][position] = min(least[number][position], (time.process_time_ns() - begun) / 1_000)
    return {number: sorted(times.tolist()) for number, times in least.items()}


def main() -> None:
    """Build, measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, nargs="+", default=[100_000])
    options.add_argument("--requests", type=int, default=10_000)
    options.add_argument("--dev-data", type=Path, default=Path("../shared/data"))
    given = options.parse_args()
    requests = typing(given.dev_data, SEED, given.requests)
    known = len(development_shops(given.dev_data))
    table = Table("shops", "segments", "MB", "texts", "mean µs", "p50", "p99", "max", title="suggest, processor time")
    for count in given.shops:
        with TemporaryDirectory() as name:
            directory = Path(name)
            begun = time.process_time()
            built = coverings(_shops(given.dev_data, count), count + known, directory)
            took, pool = time.process_time() - begun, open_pool()
            opened = {
                number: open_typeahead(directory, TypeaheadManifest((covering,)), pool)
                for number, covering in sorted(built.items())
            }
            for number, times in timed(opened, requests).items():
                paths = [segment_path(directory, use.name) for use in built[number]]
                texts = sum(weight(open_segment(path).contents) for path in paths)
                size = sum(use.size for use in built[number]) / 1e6
                shares = [times[int(share * (len(times) - 1))] for share in (0.5, 0.99, 1.0)]
                cells = (size, texts, sum(times) / len(times), *shares)
                table.add_row(f"{count:,}", str(number), *(f"{cell:,.0f}" for cell in cells))
        Console().print(f"{count:,} shops: {took:.0f} s of processor time for all segments")
    Console().print(table)


if __name__ == "__main__":
    main()
