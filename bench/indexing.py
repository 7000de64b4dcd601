"""The speed of a whole build compared with the engine alone on the same documents, and the memory of a build.

Both alternate, each in its own process. Only ratios within one run are meaningful.
"""

import argparse
import shutil
import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.commands import CommandResult, processor_seconds, run
from bench.invented import write_catalogue
from bench.opensearch_node import EngineMissingError, opensearch_node
from tests.support.real.opensearch import OpenSearchNode

ENGINES: Final = ("embedded", "opensearch")
EMBEDDED_INDEX: Final = "embedded-index"
_PREFIX: Final = "bench"


@dataclass(frozen=True, slots=True)
class Indexing:
    """Medians of one run: the seconds of a `whole` build, and of only writing the finished documents (`raw`).

    The processor time has OpenSearch's own; a build's is that of the whole command, start of the interpreter included.
    """

    engine: str
    documents: int
    whole: float
    raw: float
    whole_processor: float
    raw_processor: float

    @property
    def ratio(self) -> float:
        """The raw engine's seconds as a share of the whole build's."""
        return self.raw / self.whole


@dataclass(frozen=True, slots=True)
class Memory:
    """One build: the number of shops, and the result of the command with its peaks of memory."""

    engine: str
    shops: int
    ended: CommandResult


class _BuildTarget:
    """The engine and the directories that builds are written to."""

    def __init__(self, engine: str, directory: Path, node: OpenSearchNode | None) -> None:
        self.engine = engine
        self.node = node
        self._index = directory / EMBEDDED_INDEX
        self._state = directory / f"{engine}-state"
        self._raw = directory / f"{engine}-raw"

    def build(self, catalogue: Path) -> CommandResult:
        """Build from nothing."""
        self._clear()
        settings = {"SHOP_DIRECTORY_INDEX_PREFIX": _PREFIX}
        if self.node is not None:
            settings["SHOP_DIRECTORY_OPENSEARCH_URLS"] = self.node.url
        options = ["--engine", self.engine, "--data-dir", str(self._index), "--state-dir", str(self._state), "--json"]
        return run(["shop_directory", "index", "build", "--catalogue", str(catalogue), *options], settings)

    def load(self, finished: Path) -> Any:  # noqa: ANN401 - a Spent, as JSON
        """Write the finished documents alone; returns seconds and processor seconds."""
        self._clear()
        where = ["--directory", str(self._raw)] if self.node is None else ["--url", self.node.url]
        return run(["bench.raw", str(finished), *where]).answer

    def engine_processor(self) -> float:
        """The processor time of the engine, where it is a process of its own."""
        return 0.0 if self.node is None else processor_seconds(self.node.process.pid)

    def _clear(self) -> None:
        """Remove the last build, which would slow the next one down."""
        for directory in (self._index, self._state, self._raw):
            shutil.rmtree(directory, ignore_errors=True)
        if self.node is not None:
            from opensearchpy import OpenSearch  # noqa: PLC0415 - a child process inherits the peak memory

            with OpenSearch([self.node.url], timeout=60) as client:
                client.indices.delete(index=f"{_PREFIX}-*", params={"expand_wildcards": "all"})


def measure(engine: str, directory: Path, count: int, rounds: int) -> Indexing:
    """Build and load invented shops, alternately."""
    catalogue = directory / f"catalogue-{count}"
    finished = directory / f"finished-{count}"
    if not catalogue.exists():
        write_catalogue(catalogue, count)
    if not finished.exists():
        run(["bench.raw", str(finished), "--finish", str(catalogue)])
    whole: list[tuple[float, float]] = []
    raw: list[tuple[float, float]] = []
    documents = 0
    with _build_target(engine, directory) as target:
        target.build(catalogue)  # warms the engine up
        for _ in range(rounds):
            before = target.engine_processor()
            seconds, processor = target.load(finished)
            raw.append((seconds, processor + target.engine_processor() - before))
            before = target.engine_processor()
            ended = target.build(catalogue)
            whole.append((ended.answer["seconds"], ended.processor + target.engine_processor() - before))
            documents = sum(ended.answer["counts"].values())
    return Indexing(engine, documents, *_medians(whole, raw, part=0), *_medians(whole, raw, part=1))


def memory(engine: str, directory: Path, counts: Iterable[int]) -> Iterator[Memory]:
    """The memory of one build for each number of shops."""
    with _build_target(engine, directory) as target:
        for count in counts:
            catalogue = directory / f"catalogue-{count}"
            if not catalogue.exists():
                write_catalogue(catalogue, count)
            yield Memory(engine, count, target.build(catalogue))


def _medians(*samples: list[tuple[float, float]], part: int) -> tuple[float, ...]:
    return tuple(statistics.median(sample[part] for sample in one) for one in samples)


@contextmanager
def _build_target(engine: str, directory: Path) -> Iterator[_BuildTarget]:
    if engine == "embedded":
        yield _BuildTarget(engine, directory, None)
        return
    try:
        with opensearch_node(directory, "2g") as node:
            yield _BuildTarget(engine, directory, node)
    except EngineMissingError as missing:
        raise SystemExit(str(missing)) from missing


def speed_table(found: Iterable[Indexing]) -> Table:
    """Speeds for people."""
    table = Table("engine", "documents", "whole, s", "documents/s", "raw, s", "raw / whole", "processor, raw / whole")
    for one in found:
        table.add_row(
            one.engine,
            f"{one.documents:,}",
            f"{one.whole:.1f}",
            f"{one.documents / one.whole:,.0f}",
            f"{one.raw:.1f}",
            f"{one.ratio:.2f}",
            f"{one.raw_processor:.1f} s / {one.whole_processor:.1f} s",
        )
    return table


def memory_table(found: Iterable[Memory]) -> Table:
    """Memory for people."""
    table = Table("engine", "shops", "seconds", "peak, MiB", "of its own, MiB", "mapped files, MiB")
    for one in found:
        ended = one.ended
        sizes = f"{ended.peak_mib:.0f}", f"{ended.own_mib:.0f}", f"{ended.mapped_mib:.0f}"
        table.add_row(one.engine, f"{one.shops:,}", f"{ended.answer['seconds']:.0f}", *sizes)
    return table


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--shops", type=int, default=50_000, help="how many invented shops")
    options.add_argument("--rounds", type=int, default=3, help="how often each way is taken")
    options.add_argument("--engine", choices=ENGINES, action="append", help="one engine only")
    options.add_argument("--memory", type=int, nargs="+", help="measure the memory of builds of so many shops instead")
    options.add_argument("--directory", type=Path, help="keeps all files; a temporary directory without")
    given = options.parse_args()
    engines = given.engine or ENGINES
    with TemporaryDirectory() as temporary:
        directory = given.directory or Path(temporary)
        if given.memory:
            table = memory_table(one for engine in engines for one in memory(engine, directory, given.memory))
        else:
            table = speed_table(measure(engine, directory, given.shops, given.rounds) for engine in engines)
    Console().print(table)


if __name__ == "__main__":
    main()
