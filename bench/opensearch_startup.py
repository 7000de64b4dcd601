"""Services that join an OpenSearch cluster: `python -m bench.opensearch_startup --shops 1000000`.

Builds invented shops in a node, or takes the indices that an earlier run left in the same folder, and starts services
with an empty and with a filled folder of typeahead files, alone and next to another one. Then many fetchers with
folders of their own fetch the files at the same time, while `find_shop` is called and timed. A fetch that fails ends
with status 1.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final

from opensearchpy import AsyncOpenSearch
from rich.console import Console

from bench.built_indices import BuiltIndex, Shops
from bench.typeahead.paced import percentile
from bench.typeahead.system import RunningServer, memory
from service.parts import open_search
from service.settings.service import Settings
from shop_directory.search.opensearch.typeahead import TypeaheadFetcher
from shop_directory.search.protocol import FindQuery, SearchBackend
from tests.support.service_process import serving

_MOST_BYTES: Final = 8 * 1024**3
_READS: Final = ("bre", "shop", "kl", "tra", "dri", "ma")
_QUIET_S: Final = 10.0


@contextmanager
def started(built_index: BuiltIndex, folder: Path, scratch: Path) -> Iterator[tuple[float, RunningServer]]:
    """A service: the seconds from its start until it was ready, and its process."""
    settings = {**built_index.service, "TYPEAHEAD_DIR": str(folder)}
    began = time.monotonic()
    with serving(Path(mkdtemp(dir=scratch)), settings) as service:
        yield time.monotonic() - began, RunningServer(service.port, (service.pid,))


async def read_until(backend: SearchBackend, done: asyncio.Event) -> list[float]:
    """Call `find_shop`, one call after the other, until it is done; returns the times in milliseconds, ascending."""
    took: list[float] = []
    while not done.is_set():
        began = time.perf_counter()
        snapshot = await backend.snapshot()
        query = FindQuery(_READS[len(took) % len(_READS)], countries=(), categories=(), offset=len(took) % 50, limit=10)
        await snapshot.find(query)
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)


def fetch_together(
    settings: Mapping[str, str], generation: str, typeahead: str, count: int, folder: Path
) -> tuple[float, int]:
    """Fetch a typeahead into so many folders at the same time.

    Returns the seconds, and how many fetches failed.
    """
    prefix = settings["index_prefix"]

    async def fetch() -> tuple[float, int]:
        async with AsyncOpenSearch([settings["opensearch_urls"]], maxsize=2 * count) as client:
            fetchers = [TypeaheadFetcher(client, prefix, folder / str(number), _MOST_BYTES) for number in range(count)]
            began = time.monotonic()
            fetches = (fetcher.fetch(generation, typeahead) for fetcher in fetchers)
            results = await asyncio.gather(*fetches, return_exceptions=True)
            seconds = time.monotonic() - began
            for fetcher in fetchers:
                await fetcher.close()
        return seconds, sum(isinstance(result, BaseException) for result in results)

    return asyncio.run(fetch())


async def reads_during_fetches(
    built_index: BuiltIndex, count: int, scratch: Path
) -> tuple[list[float], list[float], float, int]:
    """Times of reads alone and while files are fetched, the seconds that fetching took, and how many fetches failed."""
    files = {name: str(scratch / name) for name in ("token_file", "reports_file")}
    settings = {**built_index.settings, **files, "request_timeout": "20", "typeahead_dir": str(scratch / "reader")}
    backend = open_search(Settings(**settings))  # type: ignore[arg-type]  # parsed
    stamp = (await backend.snapshot()).stamp
    loop, quiet, done = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    loop.call_later(_QUIET_S, quiet.set)
    alone = await read_until(backend, quiet)
    reading = asyncio.create_task(read_until(backend, done))
    # In a process of its own, so that the calls that are timed do not wait for its work.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        of = dict(built_index.settings), stamp.generation, stamp.typeahead
        seconds, failed = await loop.run_in_executor(pool, fetch_together, *of, count, scratch / "fetched")
    done.set()
    meanwhile = await reading
    await backend.close()
    return alone, meanwhile, seconds, failed


def main() -> int:
    """Build, start, measure and print; returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=1_000_000, help="how many invented shops")
    options.add_argument("--fetchers", type=int, default=60, help="how many fetch at the same time")
    options.add_argument("--directory", type=Path, help="where an earlier run left its indices")
    options.add_argument("--heap", default="3g", help="the heap of the OpenSearch node")
    given = options.parse_args()
    console = Console()
    with TemporaryDirectory() as name:
        scratch = Path(name)
        folder = scratch / "files"
        with Shops(given.directory or scratch, given.shops).opensearch(given.heap) as built_index:
            with started(built_index, folder, scratch) as (seconds, process):
                console.print(f"an empty folder: ready in {seconds:.1f} s, {memory(process).pss_mb:,.0f} MB")
            with started(built_index, folder, scratch) as (seconds, process):
                console.print(f"the files in the folder: ready in {seconds:.1f} s, {memory(process).pss_mb:,.0f} MB")
                with started(built_index, folder, scratch) as (_, other):
                    both = memory(process).pss_mb + memory(other).pss_mb
                    console.print(f"with a second process: {both:,.0f} MB together")
            size = sum(path.stat().st_size for path in folder.iterdir())
            console.print(f"files of the typeahead: {size / 1e6:,.0f} MB in {len(list(folder.iterdir()))} files")
            measured = asyncio.run(reads_during_fetches(built_index, given.fetchers, scratch))
    alone, meanwhile, seconds, failed = measured
    for title, took in (("alone", alone), ("while files are fetched", meanwhile)):
        console.print(
            f"find_shop {title}: {len(took):,} calls, p50 {percentile(took, 0.5):.1f} ms, "
            f"p99 {percentile(took, 0.99):.1f} ms"
        )
    console.print(f"{given.fetchers} fetchers: {seconds:.1f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
