"""A full build: read, gate, project, write, verify, publish.

The live generation stays in service and keeps following its changes until the last step; whatever fails leaves nothing
behind (G1, G2). What changes meanwhile is in the new generation before it is published (G3).
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self, TypeVar

from index_mappings.generations import Stamp, first_stamp, new_generation
from index_mappings.operations import Operations
from indexer.jobs.announcing import announce
from indexer.jobs.build_summary import MOST_SHRINK, BuildOptions, BuildSummary, ShrinkError, notes_of
from indexer.jobs.catching_up import CaughtUp, Follower
from indexer.jobs.keeping_live import KeptLive, LiveFollower
from indexer.jobs.operations import accounts_of, hand_over
from indexer.jobs.reading import Reading, read_catalogue
from indexer.jobs.retention import prune, remove_remains
from indexer.jobs.unchanged import digest_of, note, unchanged
from indexer.jobs.verification import Sample, verify_counts
from indexer.progress import Advance, stage
from indexer.projection.generation import Projected, Projector
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.lease import Lease, holding
from indexer.sinks.protocol import GenerationWriter, Sink
from indexer.sources.protocol import Source
from indexer.state.states import States

__all__ = ["MOST_SHRINK", "BuildOptions", "BuildSummary", "ShrinkError", "build"]

Thing = TypeVar("Thing")


def build(
    source: Source,
    sink: Sink,
    states: States | None = None,
    options: BuildOptions | None = None,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> BuildSummary:
    """Build and publish one generation from a whole catalogue.

    Args:
        source: the catalogue.
        sink: where the generation goes.
        states: keeps the state that following needs; without it, it is thrown away.
        options: how.
        clock: the time.

    Raises:
        CatalogueError: the catalogue cannot be read, or holds bad records and they were not to be skipped, or no public
            shop although none is not allowed.
        SinkError: the engine failed, did not hold what was written, or another job has the lease.
    """
    started = time.monotonic()
    lease = sink.lease()
    options = options or BuildOptions()
    with ExitStack() as stack:
        if not options.dry_run:
            stack.enter_context(holding(lease, "build", options.wait))
        built_from = digest_of(source, skip_invalid=options.skip_invalid)
        asked = options.if_changed and not options.dry_run and options.golden is None
        if asked and built_from is not None and states is not None:
            live = unchanged(sink, states, built_from)
            if live is not None:
                return BuildSummary.of_unchanged(live, time.monotonic() - started)
        working = states
        if working is None or options.dry_run:
            working = States(Path(stack.enter_context(TemporaryDirectory(prefix="shop-directory-"))) / "state", "none")
        job = _Build(source, sink, _Records(states or working, working, built_from), options, lease, clock)
        return stack.enter_context(job).run()


@dataclass(frozen=True, slots=True)
class _Records:
    """Where the records behind generations are.

    Attributes:
        former: the states of earlier generations; read only.
        states: where this build's state goes: the same, or a temporary directory.
        built_from: the digest of what this build reads; None where that is not known.
    """

    former: States
    states: States
    built_from: str | None


class _Build:
    """One build, under its lease."""

    def __init__(  # noqa: PLR0917 - as `build`
        self,
        source: Source,
        sink: Sink,
        records: _Records,
        options: BuildOptions,
        lease: Lease,
        clock: Callable[[], datetime],
    ) -> None:
        self._source, self._sink, self._records, self._options = source, sink, records, options
        self._states = records.states
        self._lease, self._clock = lease, clock
        self._started = time.monotonic()
        self._restarts = 0
        self._published = False

    def __enter__(self) -> Self:
        rehearsed = self._options.dry_run
        self._remains = () if rehearsed else remove_remains(self._sink, self._states, self._clock())
        self._previous = self._sink.live()
        self._generation = new_generation(self._clock())
        self._letters = DeadLetters(self._states.dead_letters)
        self._changes = self._source.changes()
        self._state = self._states.create(self._generation)
        former = KeptLive(self._sink, self._states, self._previous, self._letters, self._lease.check)
        self._live = LiveFollower(None, None) if rehearsed else former.following(self._source.changes())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for close in (self._live.close, self._state.close, self._letters.close):
            close()
        if self._changes is not None:
            self._changes.close()
        if not self._published:
            self._states.drop(self._generation)

    def run(self) -> BuildSummary:
        """All of it.

        Raises:
            CatalogueError, SinkError: as `build`.
        """
        problems = ProblemLog()
        counts = read_catalogue(self._reading(), self._state, problems, self._live.tick)
        self._refuse_losses(counts.public)
        stamp, caught_up = self._planned(), counts.changes
        if not self._options.dry_run:
            stamp, more = self._write_and_publish()
            caught_up += more
        disputed = [category.slug for category in self._state.shops.categories() if category.names > 1]
        removed, notes = self._prune() if self._published else ((), ())
        return BuildSummary(
            stamp=stamp,
            published=self._published,
            read=counts.read,
            left_out=counts.left_out,
            not_public=counts.not_public,
            superseded=counts.superseded,
            lost_domain=counts.lost_domain,
            disputed_categories=len(disputed),
            changes=caught_up,
            notes=(*notes_of(self._source.name("shops"), counts, disputed), *notes),
            problems=problems,
            removed=(*self._remains, *removed),
            restarts=self._restarts,
            seconds=time.monotonic() - self._started,
        )

    def _reading(self) -> Reading:
        former, states = None, self._records.former
        if self._previous is not None and not self._options.fresh_state and states.has(self._previous.generation):
            former = states.path(self._previous.generation)
        return Reading(self._source, self._changes, former, self._letters, self._options.skip_invalid)

    def _note_source(self, stamp: Stamp) -> None:
        """Note what was built from, unless a former state had a part in it or the catalogue was changed meanwhile."""
        digest = self._records.built_from
        is_alone = self._previous is None or self._options.fresh_state
        if (
            is_alone
            and digest is not None
            and digest_of(self._source, skip_invalid=self._options.skip_invalid) == digest
        ):
            note(self._state, digest, stamp)

    def _planned(self) -> Stamp:
        """The stamp of what is in the state now."""
        counts = {projected.kind: projected.count for projected in Projector(self._state).all()}
        return first_stamp(self._generation, self._clock(), self._state.position).counted(counts)

    def _write_and_publish(self) -> tuple[Stamp, CaughtUp]:
        try:
            writer = self._write()
        except IndexLostError:
            # A node may have gone with what it held: once more, in a fresh generation, from the same state.
            self._restarts += 1
            renewed = new_generation(self._clock())
            self._state.move(self._states.path(renewed))
            self._generation = renewed
            writer = self._write()
        try:
            with stage("Publishing"):
                return self._publish(writer)
        except BaseException:
            self._discard(writer)
            raise

    def _write(self) -> GenerationWriter:
        """Write, seal and verify a generation, which is gone again if any of that fails."""
        writer = self._sink.begin(self._generation)
        try:
            samples = [self._write_kind(writer, projected) for projected in Projector(self._state).all()]
            stamp = self._planned()
            self._lease.check()
            writer.write_operations(Operations(accounts_of(self._state), None))
            with stage("Merging") as advance:
                writer.merge(partial(self._told(advance), 0))
            with stage("Writing the typeahead and sealing"):
                stamp = writer.seal(stamp)
            with stage("Verifying", sum(stamp.counts.values()), "documents") as advance:
                for sample in samples:
                    sample.verify(writer, self._told(advance))
            if self._options.golden is not None:
                self._options.golden(stamp)
        except BaseException:
            self._discard(writer)
            raise
        return writer

    def _write_kind(self, writer: GenerationWriter, projected: Projected) -> Sample:
        sample, kind = Sample(projected), projected.kind
        with ExitStack() as shown:
            told = self._told(shown.enter_context(stage(f"Indexing {kind}", projected.count, kind)))

            def documents() -> Iterator[object]:
                yield from _each(sample.watch(projected.documents()), told)
                # The engine has them all, and goes on until they are written.
                shown.close()
                shown.enter_context(stage(f"Writing out {kind}"))

            sample.written = writer.add(kind, documents())
        return sample

    def _publish(self, writer: GenerationWriter) -> tuple[Stamp, CaughtUp]:
        """Bring the verified generation up to the last change, and make it live."""
        # Before the last changes: what they add is small, and readers fetch it when it is live.
        announce(self._sink, self._generation, self._meanwhile)
        editor = self._sink.edit(self._generation)
        try:
            follower = Follower(self._state, editor, self._changes, self._letters, self._lease.check, self._clock)
            self._live.tick()
            caught_up = follower.drain()
            self._refuse_losses(self._state.shops.count())
            verify_counts(self._state, editor)
            if self._previous is not None:
                hand_over(self._sink, self._previous.generation, self._state, editor)
            stamp = editor.stamp
        finally:
            editor.close()
        self._note_source(stamp)
        self._state.seal()
        self._lease.check()
        writer.publish()
        self._published = True
        if self._previous is not None:
            # Published is published: the next job marks what this one could not.
            with suppress(SinkError):
                self._sink.retire(self._previous.generation, self._clock())
        return stamp, caught_up

    def _meanwhile(self) -> None:
        self._lease.check()
        self._live.tick()

    def _discard(self, writer: GenerationWriter) -> None:
        """Remove what was written, unless it is live: publishing may have taken effect although its answer was lost."""
        live = self._sink.live()
        if live is not None and live.generation == self._generation:
            self._published = True
        else:
            writer.discard()

    def _refuse_losses(self, public: int) -> None:
        """Refuse what is more often a mistake than meant: far fewer shops than before, or none at all."""
        if self._previous is not None and not self._options.allow_shrink:
            before = self._previous.counts.get("shops", 0)
            if public < before * (1 - self._options.most_shrink):
                share = f"{self._options.most_shrink:.0%}"
                raise ShrinkError(
                    f"{public:,} public shops are left of {before:,}, and no more than {share} may be"
                    " lost: look at the catalogue, or say that it is meant by --allow-shrink"
                )
        if not public and not self._options.allow_empty and not self._options.dry_run:
            raise CatalogueError(
                "the catalogue has no public shop: look at it, or publish a directory without shops by --allow-empty"
            )

    def _prune(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Remove older generations: their names, or a note. What is published stays published if that fails."""
        try:
            return prune(self._sink, self._states, self._clock()), ()
        except SinkError as error:
            return (), (f"published, but older generations could not be removed ({error}); the next job tries again",)

    def _told(self, advance: Advance) -> Advance:
        """Tell of progress, and keep the live generation up to date on the way."""

        def told(done: int) -> None:
            advance(done)
            self._live.tick()

        return told


def _each(things: Iterable[Thing], told: Advance) -> Iterator[Thing]:
    for thing in things:
        yield thing
        told(1)
