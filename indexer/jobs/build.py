"""A full build: read, gate, project, write, verify, publish.

The live generation is served and follows its changes until the last step; a build that fails leaves nothing behind
(G1, G2). Changes that arrive during a build are in the new generation before it is published (G3).
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from index_mappings.generations import Stamp, new_generation
from indexer.jobs.build_summary import (
    MOST_SHRINK,
    BuildOptions,
    BuildSummary,
    ShrinkError,
    build_notes,
    disputed_categories,
)
from indexer.jobs.change_applier import ChangeApplier
from indexer.jobs.follower_status import carry_over_status
from indexer.jobs.generation_writing import GenerationWriting
from indexer.jobs.live_follower import LiveFollower, announce
from indexer.jobs.reading import ReadCounts, Reading, read_catalogue
from indexer.jobs.retention import prune, remove_unfinished
from indexer.jobs.unchanged import find_unchanged, record_source, source_digest
from indexer.jobs.update import ChangeCounts
from indexer.jobs.verification import verify_counts
from indexer.progress import stage
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.lease import Lease, holding
from indexer.sinks.protocol import GenerationWriter, Sink
from indexer.sources.protocol import Source, changes_of
from indexer.state.state import States

__all__ = ["MOST_SHRINK", "BuildOptions", "BuildSummary", "ShrinkError", "build"]


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
        states: stores the state that following needs; None discards the state at the end.
        options: how to build.
        clock: the time.

    Raises:
        CatalogueError: the catalogue cannot be read, has bad records that were not to be skipped, or has no public
            shop although that was not allowed.
        SinkError: the engine failed, did not hold what was written, or another job has the lease.
    """
    started = time.monotonic()
    options = options or BuildOptions()
    lease = sink.lease()
    with ExitStack() as stack:
        if not options.dry_run:
            stack.enter_context(holding(lease, "build", options.wait))
        digest = source_digest(source, skip_invalid=options.skip_invalid)
        may_skip = options.if_changed and not options.dry_run and options.acceptance is None
        if may_skip and digest is not None and states is not None:
            live = find_unchanged(sink, states, digest, alone=options.fresh_state)
            if live is not None:
                return BuildSummary(live, published=False, unchanged=True, seconds=time.monotonic() - started)
        target = states
        if target is None or options.dry_run:
            target = States(Path(stack.enter_context(TemporaryDirectory(prefix="shop-directory-"))) / "state", "none")
        return _Build(source, sink, _Records(states or target, target, digest), options, lease, clock, stack).run()


@dataclass(frozen=True, slots=True)
class _Records:
    """Where the records behind generations are.

    Attributes:
        former: the states of earlier generations; read only.
        states: where the state of this build goes: the same directory, or a temporary one.
        digest: of the source of this build; None where it is not known.
    """

    former: States
    states: States
    digest: str | None


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
        stack: ExitStack,
    ) -> None:
        self._source, self._sink, self._records, self._options = source, sink, records, options
        self._states = records.states
        self._lease, self._clock = lease, clock
        self._started = time.monotonic()
        self._restarts = 0
        self._published = False
        self._unfinished = () if options.dry_run else remove_unfinished(sink, self._states, clock())
        self._previous = sink.live()
        self._generation = new_generation(clock())
        stack.callback(lambda: None if self._published else self._states.drop(self._generation))
        self._letters = stack.enter_context(closing(DeadLetters(self._states.dead_letters)))
        self._changes = stack.enter_context(changes_of(source))
        live_changes = None if options.dry_run else stack.enter_context(changes_of(source))
        self._state = stack.enter_context(self._states.create(self._generation))
        self._live = stack.enter_context(
            closing(LiveFollower(sink, self._states, self._letters, lease.check, live_changes))
        )
        self._writing = GenerationWriting(sink, self._state, lease.check, self._live.tick, clock, options.acceptance)

    def run(self) -> BuildSummary:
        """Run all steps of the build.

        Raises:
            CatalogueError, SinkError: as `build`.
        """
        problems = ProblemLog()
        counts = read_catalogue(self._reading(), self._state, problems, self._live.tick)
        self._refuse_losses(counts.public)
        if self._options.dry_run:
            return self._summary(self._writing.stamp(self._generation), counts, problems, counts.changes)
        writer = self._write()
        try:
            with stage("Publishing"):
                stamp, applied = self._apply_changes()
                self._publish(writer, stamp)
        except BaseException:
            self._drop_unless_live()
            raise
        removed, notes = self._prune()
        return self._summary(stamp, counts, problems, counts.changes + applied, removed=removed, notes=notes)

    def _reading(self) -> Reading:
        former, states = None, self._records.former
        if self._previous is not None and not self._options.fresh_state and states.has(self._previous.generation):
            former = states.path(self._previous.generation)
        listing = None if self._options.dry_run else self._states.kept_listing
        if former is None and listing is not None:
            listing.unlink(missing_ok=True)
        return Reading(self._source, self._changes, former, self._letters, self._options.skip_invalid, listing)

    def _write(self) -> GenerationWriter:
        """Write and verify the generation; if the engine loses an index, once more under another name."""
        try:
            return self._writing.write(self._generation)
        except IndexLostError:
            self._restarts += 1
            renewed = new_generation(self._clock())
            self._state.move(self._states.path(renewed))
            self._generation = renewed
            return self._writing.write(renewed)

    def _apply_changes(self) -> tuple[Stamp, ChangeCounts]:
        """Bring the verified generation up to the last change; returns its stamp, and the counts of the changes."""
        # Announced before the last changes: what they add is small, and readers fetch it when it is live.
        announce(self._sink, self._generation, self._lease.check, self._live)
        with closing(self._sink.edit(self._generation)) as editor:
            applier = ChangeApplier(self._state, editor, self._changes, self._letters, self._lease.check, self._clock)
            self._live.tick()
            applied = applier.drain()
            self._refuse_losses(self._state.shops.count())
            verify_counts(self._state, editor)
            if self._previous is not None:
                carry_over_status(self._sink, self._previous.generation, self._state, editor)
            return editor.stamp, applied

    def _publish(self, writer: GenerationWriter, stamp: Stamp) -> None:
        self._record_source(stamp)
        self._state.seal()
        self._lease.check()
        writer.publish()
        self._published = True
        if self._previous is not None:
            # A failure here does not undo the publication; the next job retires the generation.
            with suppress(SinkError):
                self._sink.retire(self._previous.generation, self._clock())

    def _record_source(self, stamp: Stamp) -> None:
        """Record the source's digest, unless the catalogue changed during the build."""
        digest = self._records.digest
        if digest is not None and source_digest(self._source, skip_invalid=self._options.skip_invalid) == digest:
            alone = self._previous is None or self._options.fresh_state
            record_source(self._state, digest, stamp, alone=alone)

    def _drop_unless_live(self) -> None:
        """Remove what was written, unless it is live: a publication may succeed although its answer was lost."""
        live = self._sink.live()
        if live is not None and live.generation == self._generation:
            self._published = True
        else:
            self._sink.drop(self._generation)

    def _refuse_losses(self, public: int) -> None:
        """Refuse what is more often a mistake than intended: far fewer public shops than before, or none at all."""
        if self._previous is not None and not self._options.allow_shrink:
            before = self._previous.counts.get("shops", 0)
            # A share of 1 - 0.7 is a little over 0.3 as a float; that of the lost shops is as exact as the setting.
            if before and (before - public) / before > self._options.most_shrink:
                share = f"{100 * self._options.most_shrink:g}%"
                raise ShrinkError(
                    f"{public:,} of {before:,} public shops remain, and at most {share} may be lost: check the"
                    " catalogue, give another one an index of its own, or allow the loss by --allow-shrink"
                )
        if not public and not self._options.allow_empty and not self._options.dry_run:
            raise CatalogueError(
                "the catalogue has no public shop: check it, or publish a directory without shops by --allow-empty"
            )

    def _prune(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Remove older generations: their names, or a note. A failure does not undo the publication."""
        try:
            return prune(self._sink, self._states, self._clock()), ()
        except SinkError as error:
            return (), (f"published, but older generations could not be removed ({error}); the next job tries again",)

    def _summary(
        self,
        stamp: Stamp,
        counts: ReadCounts,
        problems: ProblemLog,
        changes: ChangeCounts,
        *,
        removed: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> BuildSummary:
        disputed = disputed_categories(self._state)
        return BuildSummary(
            stamp=stamp,
            published=self._published,
            read=counts.read,
            left_out=counts.left_out,
            not_public=counts.not_public,
            superseded=counts.superseded,
            lost_domain=counts.lost_domain,
            disputed_categories=len(disputed),
            changes=changes,
            notes=(*build_notes(self._source.name("shops"), counts, disputed), *notes),
            kept=counts.kept,
            kept_listing=self._states.kept_listing if counts.kept and not self._options.dry_run else None,
            problems=problems,
            removed=(*self._unfinished, *removed),
            restarts=self._restarts,
            seconds=time.monotonic() - self._started,
        )
