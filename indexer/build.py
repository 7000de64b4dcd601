"""A full build: read, gate, project, write, verify, publish.

The live generation stays untouched until the last step, and whatever fails leaves nothing behind (G1).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from index_mappings.generations import Stamp, first_stamp, new_generation
from indexer.problems import InvalidRecordsError, ProblemLog
from indexer.progress import Advance, stage
from indexer.projection import Projected, projections
from indexer.reading import Source, read_catalogue
from indexer.sinks.protocol import GenerationWriter, Sink, SinkError
from indexer.staging import Staging
from indexer.verification import Sample

_NOTED: Final = 20

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did.

    Attributes:
        stamp: of the published generation, with its counts.
        read: records read by type, bad ones not counted.
        left_out: records by type that belong to no public shop.
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
    read: Mapping[str, int]
    left_out: Mapping[str, int]
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
        counts, belongings = read_catalogue(source, staging, problems)
        if problems.count and not skip_invalid:
            raise InvalidRecordsError(problems)
        previous = sink.live()
        stamp = _write(sink, projections(staging, belongings, counts.public), clock())
        disputed = [category.slug for category in staging.categories() if category.names > 1]
        kept = {stamp.generation} | ({previous.generation} if previous else set())
        removed, remains = _prune(sink, kept)
        return BuildSummary(
            stamp=stamp,
            read=counts.read,
            left_out=counts.left_out,
            not_public=counts.not_public,
            superseded=counts.superseded,
            lost_domain=len(counts.lost),
            disputed_categories=len(disputed),
            notes=(*_notes(source.name("shops"), counts.lost, disputed), *remains),
            problems=problems,
            removed=removed,
            seconds=time.monotonic() - started,
        )


def _write(sink: Sink, kinds: Iterable[Projected], now: datetime) -> Stamp:
    generation = new_generation(now)
    writer = sink.begin(generation)
    try:
        samples = [_write_kind(writer, projected) for projected in kinds]
        counts = {sample.projected.kind: sample.written for sample in samples}
        stamp = first_stamp(generation, now).counted(counts)
        writer.seal(stamp)
        for sample in samples:
            sample.verify(writer)
        writer.publish()
    except BaseException:
        # An interrupted build leaves nothing behind either. But publishing may have taken effect although its answer
        # was lost: what is live now must never be removed.
        live = sink.live()
        if live is None or live.generation != generation:
            writer.discard()
        raise
    return stamp


def _write_kind(writer: GenerationWriter, projected: Projected) -> Sample:
    sample = Sample(projected)
    with stage(f"Indexing {projected.kind}", projected.count, projected.kind) as advance:
        sample.written = writer.add(projected.kind, _told(sample.watch(projected.documents()), advance))
    return sample


def _prune(sink: Sink, kept: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Remove older generations: their names, or a note. What is published stays published if they can't be removed."""
    try:
        return sink.prune(kept), ()
    except SinkError as error:
        return (), (f"published, but {error}; the next build tries again",)


def _notes(file: str, lost: tuple[tuple[int, int], ...], disputed: list[str]) -> tuple[str, ...]:
    domains = [f"{file}:{line}: left out, its domain belongs to the shop of line {won}" for line, won in lost[:_NOTED]]
    names = [f"category {slug} has more than one display name; the most frequent is shown" for slug in disputed]
    return (*domains, *names[:_NOTED])


def _told(things: Iterable[Thing], advance: Advance) -> Iterator[Thing]:
    for thing in things:
        yield thing
        advance(1)
