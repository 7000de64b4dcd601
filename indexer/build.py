"""A full build: read, gate, project, write, verify, publish.

The live generation stays untouched until the last step, and whatever fails leaves nothing behind (G1).
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Protocol, TypeVar

from index_mappings.documents import stored_part
from index_mappings.generations import Stamp, first_stamp, new_generation
from indexer.problems import InvalidRecordsError, Problem, ProblemLog
from indexer.progress import Advance, stage
from indexer.project import project_category, project_shop
from indexer.records import ShopRecord
from indexer.sinks.protocol import GenerationWriter, Sink, SinkError
from indexer.staging import KeyTwiceError, Staging

_SAMPLE: Final = 200
_AUDIT_BATCH: Final = 1_000
_NOTED: Final = 20

Thing = TypeVar("Thing")


class Numbered(Protocol):
    """A record with the line where it stands."""

    @property
    def record(self) -> ShopRecord:
        """The shop."""

    @property
    def line(self) -> int:
        """Its line."""


class Source(Protocol):
    """A catalogue's shops."""

    @property
    def shops_file(self) -> str:
        """What reports call the place where the shops stand."""

    def size(self) -> int:
        """How much there is to go through, in bytes."""

    def shops(self, problems: ProblemLog, advance: Advance) -> Iterable[Numbered]:
        """Read the shops; bad ones go to `problems`."""


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did.

    Attributes:
        stamp: of the published generation, with its counts.
        read: shops read, bad ones not counted.
        not_public: shops that the gate kept back.
        superseded: records that a newer one of the same key replaced.
        lost_domain: public shops left out because another one has their domain.
        disputed_categories: slugs with more than one display name.
        notes: what an operator should look at, by line; at most twenty of a kind.
        problems: what was wrong with records that were passed over.
        removed: generations removed after publishing.
        seconds: how long it took.
    """

    stamp: Stamp
    read: int
    not_public: int
    superseded: int
    lost_domain: int
    disputed_categories: int
    notes: tuple[str, ...]
    problems: ProblemLog
    removed: tuple[str, ...]
    seconds: float


def build(
    source: Source,
    sink: Sink,
    *,
    skip_invalid: bool = False,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> BuildSummary:
    """Build and publish one generation from a whole catalogue.

    Raises:
        CatalogueError: the catalogue cannot be read, or holds bad records and they were not to be skipped.
        SinkError: the engine failed, or did not hold what was written.
    """
    started = time.monotonic()
    problems = ProblemLog()
    with Staging() as staging:
        read, superseded = _stage_shops(source, staging, problems)
        if problems.count and not skip_invalid:
            raise InvalidRecordsError(problems)
        public = staging.settle()
        lost = list(staging.lost_domains())
        hidden = read - superseded - public - len(lost)
        previous = sink.live()
        stamp, disputed = _write(sink, staging, public, clock())
        kept = {stamp.generation} | ({previous.generation} if previous else set())
        removed, remains = _prune(sink, kept)
        return BuildSummary(
            stamp=stamp,
            read=read,
            not_public=hidden,
            superseded=superseded,
            lost_domain=len(lost),
            disputed_categories=len(disputed),
            notes=(*_notes(source.shops_file, lost, disputed), *remains),
            problems=problems,
            removed=removed,
            seconds=time.monotonic() - started,
        )


def _stage_shops(source: Source, staging: Staging, problems: ProblemLog) -> tuple[int, int]:
    read = superseded = 0
    with stage("Reading shops", source.size(), "bytes") as advance:
        for numbered in source.shops(problems, advance):
            try:
                superseded += not staging.put(numbered.record, numbered.line)
                read += 1
            except KeyTwiceError as error:
                problems.add(Problem(source.shops_file, numbered.line, "id", str(error)))
    return read, superseded


def _write(sink: Sink, staging: Staging, public: int, now: datetime) -> tuple[Stamp, list[str]]:
    generation = new_generation(now)
    writer = sink.begin(generation)
    try:
        with stage("Indexing", public, "shops") as advance:
            counts = {"shops": writer.add("shops", map(project_shop, _told(staging.winners(), advance)))}
        counts["categories"] = writer.add("categories", map(project_category, staging.categories()))
        stamp = first_stamp(generation, now).counted(counts)
        writer.seal(stamp)
        _verify(writer, staging, stamp, public)
        writer.publish()
    except BaseException:
        # An interrupted build leaves nothing behind either. But publishing may have taken effect although its answer
        # was lost: what is live now must never be removed.
        live = sink.live()
        if live is None or live.generation != generation:
            writer.discard()
        raise
    return stamp, [category.slug for category in staging.categories() if category.names > 1]


def _prune(sink: Sink, kept: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Remove older generations: their names, or a note. What is published stays published if they can't be removed."""
    try:
        return sink.prune(kept), ()
    except SinkError as error:
        return (), (f"published, but {error}; the next build tries again",)


def _verify(writer: GenerationWriter, staging: Staging, stamp: Stamp, public: int) -> None:
    """Hold the written generation against what was projected: counts, a sample, and nothing that is not public."""
    if stamp.counts["shops"] != public:
        raise SinkError(f"{stamp.counts['shops']} shops were written, {public} are public")
    for kind, count in stamp.counts.items():
        if (found := writer.count(kind)) != count:
            raise SinkError(f"the new generation holds {found} {kind}, {count} were written")
    step = max(1, public // _SAMPLE)
    for batch in _batches(islice(staging.winners(), 0, None, step), _AUDIT_BATCH):
        expected = {shop.id: stored_part(project_shop(shop)) for shop in batch}
        if writer.read("shops", expected) != expected:
            raise SinkError("shops read back from the new generation differ from what was written")
    # It holds as many shops as are public. If it holds each public one, there is no room for another; and no id of a
    # shop that is not public has to be asked for, not even here.
    if sum(writer.held("shops", ids) for ids in _batches(staging.public_ids(), _AUDIT_BATCH)) != public:
        raise SinkError("the new generation holds a shop that may not be public")


def _notes(file: str, lost: list[tuple[int, int]], disputed: list[str]) -> tuple[str, ...]:
    domains = [f"{file}:{line}: left out, its domain belongs to the shop of line {won}" for line, won in lost[:_NOTED]]
    names = [f"category {slug} has more than one display name; the most frequent is shown" for slug in disputed]
    return (*domains, *names[:_NOTED])


def _told(things: Iterable[Thing], advance: Advance) -> Iterator[Thing]:
    for thing in things:
        yield thing
        advance(1)


def _batches(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    iterator = iter(things)
    while batch := list(islice(iterator, size)):
        yield batch
