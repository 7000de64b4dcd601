"""The rollback: publishes the previous generation again, without shops hidden since (G2, V1).

The previous generation first takes all changes that came after it, and the shops that the live state has hidden; only
then is it published. Records that only the live generation's build brought are not taken over.
"""

from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import Stamp
from indexer.jobs.follower_status import carry_over_status
from indexer.jobs.following import LiveFollower, announce
from indexer.jobs.generation_writing import first_stamp_of
from indexer.jobs.update import ChangeApplier, ChangeCounts, replay, update
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import holding
from indexer.sinks.protocol import Generation, GenerationRole, Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.changing import write_row
from indexer.state.rows import PUBLIC, Origin, Presence, attached, newer_sql
from indexer.state.state import State, States

_WAIT_S: Final = 60.0
# Shops that the live state hides although their records in the previous one state a newer version: the build of the
# live generation decided so, by other versions (times instead of numbers, or `--fresh-state`).
_HIDDEN_LATER: Final = f"""
SELECT 'shops', now.id FROM newer.shops AS now JOIN main.shops AS was ON was.id = now.id
WHERE NOT now.{PUBLIC} AND now.presence <> {Presence.MISSING:d} AND was.{PUBLIC} AND {newer_sql("was", "now")}
"""
# Changes that the live state has and the previous one may lack, such as those of a stream that can't be read again;
# and shops that are hidden now, for any reason.
_SINCE: Final = f"""
SELECT 'shops', now.id FROM newer.shops AS now LEFT JOIN main.shops AS was ON was.id = now.id
WHERE (now.origin = {Origin.CHANGE:d} AND (was.id IS NULL OR {newer_sql("now", "was")}))
   OR (NOT now.{PUBLIC} AND now.presence <> {Presence.MISSING:d} AND was.{PUBLIC}
       AND (now.kind = 0 OR NOT {newer_sql("was", "now")}))
UNION ALL
SELECT now.type, now.key FROM newer.belongings AS now
LEFT JOIN main.belongings AS was ON was.type = now.type AND was.key = now.key
WHERE now.origin = {Origin.CHANGE:d} AND (was.key IS NULL OR {newer_sql("now", "was")}
    OR ((now.kind, now.number) = (was.kind, was.number)
        AND now.presence = {Presence.DELETED:d} AND was.presence = {Presence.THERE:d}))
"""


@dataclass(frozen=True, slots=True)
class RollbackSummary:
    """What a rollback did: the stamp that is live now, and the generation that it replaced.

    After a dry run, the stamp has the counts that it would have, and its former sequence.
    `changes` were applied before it was published; `carried_over` counts records of the replaced generation's state.
    """

    stamp: Stamp
    replaced: str
    changes: ChangeCounts
    carried_over: int


def roll_back(
    sink: Sink, states: States, changes: ChangeSource | None, *, wait: float = _WAIT_S, dry_run: bool = False
) -> RollbackSummary:
    """Publish the previous generation again; a `dry_run` only returns what would be published.

    `changes` are those since the previous generation, where they can be read again. `wait` is the seconds to wait while
    another job has the lease. Raises StateError if a state is lost, as the shops hidden since are unknown then;
    CatalogueError if the changes can't be read; SinkError if no previous generation can be read, or the engine failed.
    """
    lease = sink.lease()
    with holding(lease, "rollback", wait), ExitStack() as stack:
        live, previous, stamp = _live_and_previous(sink)
        # It records the hidden shops.
        known = stack.enter_context(states.open(live.name))
        if dry_run:
            with states.open(previous.name) as state:
                return _planned(state, known, stamp, changes)
        with closing(DeadLetters(states.dead_letters)) as letters:
            with closing(LiveFollower(sink, states, letters, lease.check, changes)) as follower:
                announce(sink, previous.name, lease.check, follower)
            with states.open(previous.name) as state, closing(sink.edit(previous.name)) as editor:
                with attached(state.connection, known.path, "newer"):
                    carried_over = _hide_later(state, known)
                applied = ChangeApplier(state, editor, changes, letters, lease.check).drain()
                with attached(state.connection, known.path, "newer"):
                    carried_over += _take(state, known, _SINCE)
                update(state, editor, lease.check)
                # It has all that the live state has.
                state.missing = known.missing
                carry_over_status(sink, live.name, state, editor)
                stamp = editor.stamp
        lease.check()
        sink.publish(previous.name, live.name)
        # A failure here does not undo the publication; the next job retires the generation.
        with suppress(SinkError):
            sink.retire(live.name, datetime.now(UTC))
        return RollbackSummary(stamp, live.name, applied, carried_over)


def _live_and_previous(sink: Sink) -> tuple[Generation, Generation, Stamp]:
    by_role = {found.role: found for found in sink.generations()}
    live, previous = by_role.get(GenerationRole.LIVE), by_role.get(GenerationRole.PREVIOUS)
    if live is None or previous is None or previous.stamp is None:
        raise SinkError("there is no previous generation to roll back to")
    if not previous.whole:
        raise SinkError("the previous generation has lost an index or a file, so no service can answer: build again")
    if not previous.stamp.readable:
        raise SinkError(
            f"the previous generation has schema version {previous.stamp.schema_version}, services of this version read"
            f" {SCHEMA_VERSION} only: build again"
        )
    # All files are read, as services do before they answer from them.
    with closing(sink.edit(previous.name)) as editor:
        damaged = [name for _, name in editor.files_damaged()] + list(editor.typeahead.damaged())
    if damaged:
        raise SinkError(f"the file {damaged[0]} of the previous generation is missing or damaged: build again")
    return live, previous, previous.stamp


def _planned(state: State, known: State, stamp: Stamp, changes: ChangeSource | None) -> RollbackSummary:
    """What a rollback would do, tried in the previous generation's state and undone."""
    with (
        TemporaryDirectory(prefix="shop-directory-") as folder,
        closing(DeadLetters(Path(folder) / "none.ndjson")) as letters,
        attached(state.connection, known.path, "newer"),
        state.transaction(undone=True),
    ):
        carried_over = _hide_later(state, known)
        applied = replay(state, changes, letters)
        carried_over += _take(state, known, _SINCE)
        counts = first_stamp_of(state, stamp.generation, datetime.now(UTC)).counts
    return RollbackSummary(stamp.counted(counts), known.path.stem, applied, carried_over)


def _hide_later(state: State, known: State) -> int:
    """Hide the shops that the newer state, which is attached, hides by older versions; returns the number of shops.

    Called before the changes are applied, of which newer ones decide again. After an earlier rollback the live state is
    the older one, and newer records of the other one are not hidden by it.
    """
    return _take(state, known, _HIDDEN_LATER) if known.path.stem > state.path.stem else 0


def _take(state: State, known: State, selected: str) -> int:
    """Take over the selected records from the newer state, which is attached; returns the number of records."""
    with state.transaction():
        since = list(state.connection.execute(selected))
        for kind, key in since:
            if (row := known.rows.row(kind, key)) is not None:
                write_row(state, row)
    return len(since)
