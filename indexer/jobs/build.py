"""A full build in seven steps: prepare, read, write, verify, catch up, publish, prune.

The live generation is served and follows its changes until it is replaced; a build that fails leaves nothing behind
(G1, G2). Changes that arrive during a build are in the new generation before it is published (G3).
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import distributions
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import index_mappings
from index_mappings.generations import Stamp, new_generation
from indexer.disk_space import DiskFullError
from indexer.jobs.defaults import MOST_SHRINK
from indexer.jobs.follower_status import carry_over_status
from indexer.jobs.following import LiveFollower, announce
from indexer.jobs.generation_writing import first_stamp_of, verify_counts, write_generation
from indexer.jobs.reading import ReadCounts, Reading, build_notes, disputed_categories, long_named, read_catalogue
from indexer.jobs.update import NOTHING, ChangeApplier, ChangeCounts, is_behind
from indexer.progress import in_thread, remark, stage, whole_job
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import IndexLostError, SinkError
from indexer.sinks.lease import Lease, holding
from indexer.sinks.protocol import Generation, GenerationRole, Sink
from indexer.sources.protocol import Source, changes_of
from indexer.state.marks import read_marks
from indexer.state.migration import is_former, is_sealed
from indexer.state.state import State, States

_WAIT_S: Final = 60.0
# For how long requests may still read a generation that was retired.
_GRACE: Final = timedelta(seconds=60)
# The property of a state that says what its generation was built from.
_DIGEST_KEY: Final = "built_from"
# The expected work of the later stages, by what reading the same records takes. Measured with 30,000 invented shops
# with related records, and without with 100,000, 2,500,000 (shops 14) and 10,000,000 (shops 9; docs/scale.md).
_SORTING: Final = 0.4
_SHOP_STAGES: Final = {
    "Indexing shops": 11.0,
    "Writing out shops": 0.9,
    "Indexing facts": 0.7,
    "Writing out facts": 0.2,
    "Merging": 0.5,
    "Writing the typeahead and sealing": 1.6,
    "Verifying": 0.2,
}
_RECORD_STAGES: Final = {"Indexing": 2.2, "Writing out": 0.2}


class ShrinkError(SinkError):
    """The new generation would lose too many of the public shops, and no option allows it (G2)."""


class AcceptanceFailedError(SinkError):
    """Answers of the new generation fail acceptance queries; the text has the first of them (G1)."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a build is done; the help of `index build` describes most options.

    `most_shrink` is the share of the live generation's public shops that may be lost without `allow_shrink`.
    `logo_hosts` are hosts besides a shop's own on which its logo may be.
    `acceptance` asks the operator's acceptance queries of a sealed generation, and raises SinkError when one fails.
    `wait` is how many seconds to wait while another job has the lease.
    """

    skip_invalid: bool = False
    allow_empty: bool = False
    allow_shrink: bool = False
    most_shrink: float = MOST_SHRINK
    logo_hosts: tuple[str, ...] = ()
    fresh_state: bool = False
    dry_run: bool = False
    if_changed: bool = False
    acceptance: Callable[[Stamp], None] | None = None
    wait: float = _WAIT_S


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did.

    After a dry run, `stamp` is that of the generation it would make. `changes` were applied to the new one, before and
    after it was written. `notes` are for the operator to look into, at most twenty of a kind. `kept_listing` names the
    records kept from the former state; None where there are none, and after a dry run. `problems` are those of skipped
    records. `removed` has generations of killed builds too. `restarts` is how often the engine lost an index, so that a
    new generation was started. `unchanged` says that the live generation was built from the same source, so that
    nothing was read or built. `marked` are the ids of the shops that `index hide` has hidden, after a build with
    `fresh_state`, which forgets all else that was hidden.
    """

    stamp: Stamp
    published: bool
    catalogue: ReadCounts = field(default_factory=ReadCounts)
    disputed_categories: int = 0
    changes: ChangeCounts = NOTHING
    notes: tuple[str, ...] = ()
    kept_listing: Path | None = None
    problems: ProblemLog = field(default_factory=ProblemLog)
    removed: tuple[str, ...] = ()
    restarts: int = 0
    seconds: float = 0.0
    unchanged: bool = False
    marked: tuple[str, ...] = ()


def build(
    source: Source,
    sink: Sink,
    states: States | None = None,
    options: BuildOptions | None = None,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> BuildSummary:
    """Build and publish one generation from a whole catalogue.

    `states` stores the state that following needs; without it the state is discarded at the end. Raises CatalogueError
    if the catalogue cannot be read, has bad records that are not to be skipped, or no public shop although that is not
    allowed; SinkError if the engine failed, lost writes, or another job has the lease.
    """
    started, options = time.monotonic(), options or BuildOptions()
    with ExitStack() as stack:
        lease = sink.lease()
        if not options.dry_run:
            stack.enter_context(holding(lease, "build", options.wait))
        digest = _source_digest(source, options)
        if (live := _unchanged(sink, states, digest, options)) is not None:
            return BuildSummary(live, published=False, unchanged=True, seconds=time.monotonic() - started)

        job = _Build(source, sink, options, lease, clock, digest)
        job.prepare(states, stack)
        stack.enter_context(whole_job(expected_work(source, dry_run=options.dry_run)))
        job.counts = read_catalogue(job.reading, job.state, job.problems, job.live.tick)
        job.refuse_losses(job.counts.public)
        job.note_long_names()
        if options.dry_run:
            return job.summary(first_stamp_of(job.state, job.generation, clock()), job.counts.changes, started)
        try:
            try:
                job.write()
            except IndexLostError:
                job.restart()
                job.write()
            with stage("Publishing"):
                stamp, applied = job.catch_up()
                job.publish(stamp)
        except BaseException:
            # The operator needs to know why it failed; the next job removes the rest.
            with suppress(SinkError):
                job.drop_unless_live()
            raise
        job.prune()
        return job.summary(stamp, job.counts.changes + applied, started)


def expected_work(source: Source, *, dry_run: bool) -> dict[str, float]:
    """The work of each stage of a build, in the unit of its source, by title and in their order."""
    sizes = {kind: source.size(kind) for kind in source.kinds()}
    work: dict[str, float] = {f"Reading {kind}": size for kind, size in sizes.items()}
    work["Sorting the records"] = _SORTING * sum(sizes.values())
    if dry_run:
        return work
    # As the projector writes them.
    work |= {f"{title} shops": _SHOP_STAGES[f"{title} shops"] * sizes["shops"] for title in _RECORD_STAGES}
    for kind in ("coupons", "offers"):
        work |= {f"{title} {kind}": cost * sizes.get(kind, 0) for title, cost in _RECORD_STAGES.items()}
    return work | {title: cost * sizes["shops"] for title, cost in _SHOP_STAGES.items() if title not in work}


def _unchanged(sink: Sink, states: States | None, digest: str | None, options: BuildOptions) -> Stamp | None:
    """The live stamp, if the live generation is complete, readable and what this build would make; else None.

    In any doubt the build runs: for a database that can't be digested, a generation that has followed changes since, a
    file of the index that is missing, a shop that `index hide` has recorded and no job has hidden yet.
    """
    may_skip = options.if_changed and not options.dry_run and options.acceptance is None
    if not may_skip or digest is None or states is None:
        return None
    try:
        stamp = sink.live()
        if stamp is None or not stamp.readable or not states.has(stamp.generation):
            return None
        with states.open(stamp.generation) as state:
            if is_behind(state):
                return None
            recorded = state.get(_DIGEST_KEY)
        reproducible = {_recorded(digest, stamp, alone=True)}
        if not options.fresh_state:
            reproducible.add(_recorded(digest, stamp, alone=False))
        return stamp if recorded in reproducible and _is_complete(sink, stamp) else None
    except (CatalogueError, SinkError, DiskFullError):
        return None  # the build that follows reports the problems


def _is_complete(sink: Sink, stamp: Stamp) -> bool:
    with closing(sink.edit(stamp.generation)) as editor:
        counted = all(editor.count(kind) == count for kind, count in stamp.counts.items())
        return counted and not editor.typeahead.damaged()


def _source_digest(source: Source, options: BuildOptions) -> str | None:
    """A digest of all inputs of a build except former states; None where the source can't be digested."""
    content = source.fingerprint()
    if content is None:
        return None
    return sha256(json.dumps([content, options.skip_invalid, options.logo_hosts, *_program()]).encode()).hexdigest()


def _recorded(digest: str, stamp: Stamp, *, alone: bool) -> str:
    """What a generation's state records of its source; a later sequence means that changes were applied.

    `alone` says whether no former state was used. With one, building again from the same source has the same result,
    as the generation's own state holds the kept records, except with `--fresh-state`.
    """
    return json.dumps([digest, stamp.sequence, *([] if alone else ["with former state"])])


@cache
def _program() -> list[str]:
    """The digest of the code and tables that make documents, and the versions of Python and all installed packages."""
    folders = (Path(index_mappings.__file__).parent, Path(__file__).parents[1])
    code = sha256()
    files = (path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".toml"})
    for path in sorted(files):
        code.update(f"{path.name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    installed = sorted(f"{found.name} {found.version}" for found in distributions())
    return [sys.version, code.hexdigest(), *installed]


@dataclass(slots=True)
class _Build:
    """What the steps of one build work on, under its lease.

    `states` has the state of this build: with the former states, or in a temporary directory. `live` keeps the live
    generation up to date during the build; `previous` is its stamp, `live_state` the file of its state. `removed`
    begins with the generations of killed builds.
    """

    source: Source
    sink: Sink
    options: BuildOptions
    lease: Lease
    clock: Callable[[], datetime]
    digest: str | None
    states: States = field(init=False)
    reading: Reading = field(init=False)
    state: State = field(init=False)
    live: LiveFollower = field(init=False)
    generation: str = field(init=False)
    previous: Stamp | None = None
    live_state: Path | None = None
    removed: tuple[str, ...] = ()
    restarts: int = 0
    published: bool = False
    counts: ReadCounts = field(default_factory=ReadCounts)
    problems: ProblemLog = field(default_factory=ProblemLog)
    notes: tuple[str, ...] = ()
    long_named: Sequence[tuple[int, int]] = ()

    def prepare(self, states: States | None, stack: ExitStack) -> None:
        """Remove the remains of killed builds, and open files and locks for the build; `stack` closes it."""
        dry_run, target = self.options.dry_run, states
        if target is None or dry_run:
            target = States(Path(stack.enter_context(TemporaryDirectory(prefix="shop-directory-"))) / "state", "none")
        self.states, known = target, states or target
        if known is not target and known.marks.exists():
            shutil.copyfile(known.marks, target.marks)
        if not dry_run:
            self.removed = remove_unfinished(self.sink, target, self.clock())
        self.previous, self.generation = self.sink.live(), new_generation(self.clock())
        stack.callback(self.discard_state)
        letters = stack.enter_context(closing(DeadLetters(target.dead_letters)))
        changes = stack.enter_context(changes_of(self.source))
        live_changes = None if dry_run else stack.enter_context(changes_of(self.source))
        former, listing = None, None if dry_run else target.kept_listing
        # Its state knows the hidden shops, also where its stamp or all of it is lost.
        live = next((found.name for found in self.sink.generations() if found.role is GenerationRole.LIVE), None)
        live = live or known.newest_sealed()
        if live is not None and known.has(live):
            former = known.path(live)
            if is_former(former):
                known.open(live).close()
            # A state that can't be read is refused when it is taken over.
            self.live_state = former if self.previous is not None and is_sealed(former) else None
            former = None if self.options.fresh_state else former
        if former is None and listing is not None:
            listing.unlink(missing_ok=True)
        self.reading = Reading(self.source, changes, former, letters, self.options.skip_invalid, listing)
        self.state = stack.enter_context(target.create(self.generation))
        self.state.logo_hosts = self.options.logo_hosts
        follower = LiveFollower(self.sink, target, letters, self.lease.check, live_changes, held=changes)
        self.live = stack.enter_context(closing(follower))

    def note_long_names(self) -> None:
        """Say before the index is written which shops take much of the time; the summary names each."""
        self.long_named = long_named(self.state)
        if self.long_named:
            line, _ = max(self.long_named, key=itemgetter(1))
            where = f"{self.source.name('shops')}:{line}" if line else "a change"
            remark(f"Shops with long names, which take longer: {len(self.long_named):,}, most of all {where}")

    def discard_state(self) -> None:
        """Remove the state of a generation that was not published."""
        if not self.published:
            self.states.drop(self.generation)

    def write(self) -> None:
        """Write and seal the generation, verify all documents, and run the acceptance queries."""
        writer = self.sink.begin(self.generation)
        stamp = first_stamp_of(self.state, self.generation, self.clock())
        sealed = write_generation(writer, stamp, self.state, self.lease.check, self.live.tick)
        if self.options.acceptance is not None:
            in_thread(partial(self.options.acceptance, sealed), self.live.tick)

    def restart(self) -> None:
        """Go on under another name, as the engine lost an index of this generation."""
        self.sink.drop(self.generation)
        self.restarts += 1
        self.generation = new_generation(self.clock())
        self.state.move(self.states.path(self.generation))

    def catch_up(self) -> tuple[Stamp, ChangeCounts]:
        """Bring the verified generation up to the last change; returns its stamp, and the counts of the changes."""
        # Announced before the last changes: they add little, and readers fetch it when it is live.
        announce(self.sink, self.generation, self.lease.check, self.live)
        with closing(self.sink.edit(self.generation)) as editor:
            reading = self.reading
            applier = ChangeApplier(self.state, editor, reading.changes, reading.letters, self.lease.check)
            self.live.tick()
            applied = applier.drain()
            self.refuse_losses(self.state.public.count("shops"))
            verify_counts(self.state, editor)
            if self.previous is not None:
                carry_over_status(self.sink, self.previous.generation, self.state, editor)
            return editor.stamp, applied

    def publish(self, stamp: Stamp) -> None:
        """Publish the generation, and retire the one that was live."""
        # The source's digest, unless the catalogue changed during the build.
        if self.digest is not None and _source_digest(self.source, self.options) == self.digest:
            alone = (self.previous is None and self.reading.former is None) or self.options.fresh_state
            self.state.set(_DIGEST_KEY, _recorded(self.digest, stamp, alone=alone))
        self.state.skipped = {"records": self.problems.records, "reasons": self.problems.reasons}
        self.state.seal()
        self.lease.check()
        self.sink.publish(self.generation, None if self.previous is None else self.previous.generation)
        self.published = True
        if self.previous is not None:
            # A failure here does not undo the publication; the next job retires the generation.
            with suppress(SinkError):
                self.sink.retire(self.previous.generation, self.clock())

    def drop_unless_live(self) -> None:
        """Remove the new generation, unless it is live: a publication may succeed although its answer was lost.

        While the live generation is unknown, the state stays as well; the next job removes both if they are unfinished.
        """
        self.published = True
        live = self.sink.live()
        self.published = live is not None and live.generation == self.generation
        if not self.published:
            self.sink.drop(self.generation)

    def refuse_losses(self, public: int) -> None:
        """Refuse likely mistakes: far fewer shops or records of a type, or no shop."""
        most, counts = self.options.most_shrink, dict[str, tuple[int, int]]()
        if self.previous is not None and not self.options.allow_shrink:
            counts["public shops"] = self.previous.counts.get("shops", 0), public
            if self.live_state is not None:
                lost = self.state.public.lost_records(self.live_state)
                counts |= {f"records of type {kind}": before_and_now for kind, before_and_now in lost.items()}
        for what, (before, left) in counts.items():
            # A share of 1 - 0.7 is a little over 0.3 as a float; that of the lost shops is as exact as the setting.
            if before and (before - left) / before > most:
                raise ShrinkError(
                    f"{left:,} of {before:,} {what} remain, and at most {100 * most:g}% may be lost: check the"
                    " catalogue, give another one an index of its own, or allow the loss by --allow-shrink"
                )
        if not public and not self.options.allow_empty and not self.options.dry_run:
            raise CatalogueError(
                "the catalogue has no public shop: check it, or publish a directory without shops by --allow-empty"
            )

    def prune(self) -> None:
        """Remove older generations. A failure is noted, and does not undo the publication."""
        try:
            self.removed += prune(self.sink, self.states, self.clock())
        except SinkError as error:
            self.notes = (f"published, but older generations could not be removed ({error}); the next job tries again",)

    def summary(self, stamp: Stamp, changes: ChangeCounts, started: float) -> BuildSummary:
        """What the build did since `started`, in seconds of the monotonic clock."""
        disputed = disputed_categories(self.state)
        return BuildSummary(
            stamp=stamp,
            published=self.published,
            catalogue=self.counts,
            disputed_categories=len(disputed),
            changes=changes,
            notes=(*build_notes(self.source.name("shops"), self.counts, disputed, self.long_named), *self.notes),
            kept_listing=self.states.kept_listing if self.counts.kept and not self.options.dry_run else None,
            problems=self.problems,
            removed=self.removed,
            restarts=self.restarts,
            seconds=time.monotonic() - started,
            marked=tuple(sorted(read_marks(self.states.marks)[0])) if self.options.fresh_state else (),
        )


def remove_unfinished(sink: Sink, states: States, now: datetime) -> tuple[str, ...]:
    """Remove the unfinished generations of earlier jobs; call it under the lease, before starting a generation.

    Returns the removed generations.
    """
    generations = sink.generations()
    unfinished = tuple(found.name for found in generations if found.role is GenerationRole.UNFINISHED)
    for name in unfinished:
        sink.drop(name)
    for found in generations:
        if found.role is GenerationRole.PREVIOUS and found.retired_at is None:
            sink.retire(found.name, now)  # the job that replaced it was killed before this step
    keep = {found.name for found in generations} - set(unfinished)
    if all(found.role is not GenerationRole.LIVE for found in generations) and (newest := states.newest_sealed()):
        # The engine has lost the live generation, or does not say which it is; its state knows the hidden shops.
        keep.add(newest)
    states.prune(keep)
    states.remove_torn(now)
    return unfinished


def prune(sink: Sink, states: States, now: datetime, *, keep_previous: bool = True) -> tuple[str, ...]:
    """Remove generations with their states, if they were retired at least a minute ago: requests may still read others.

    With `keep_previous` the previous generation is retained, for a rollback. Returns the removed generations.
    """
    generations = sink.generations()
    removed = tuple(found.name for found in generations if is_due(found, now, keep_previous=keep_previous))
    for name in removed:
        sink.drop(name)
    states.prune({found.name for found in generations} - set(removed))
    return removed


def is_due(found: Generation, now: datetime, *, keep_previous: bool) -> bool:
    """Whether a generation may be removed."""
    if found.role is GenerationRole.LIVE or (found.role is GenerationRole.PREVIOUS and keep_previous):
        return False
    return found.retired_at is not None and now.astimezone(UTC) - found.retired_at >= _GRACE
