"""Going back to the previous generation, without showing again what has been hidden since (G2, V1).

The previous generation first takes all changes that came after it, and what the live state knows to be hidden; only
then is it published. What the bad build itself brought stays behind.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.generations import Stamp
from indexer.jobs.announcing import announce
from indexer.jobs.catching_up import CaughtUp, Follower
from indexer.jobs.keeping_live import KeptLive, LiveFollower
from indexer.jobs.operations import hand_over
from indexer.jobs.update import update
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import Lease, holding
from indexer.sinks.protocol import Generation, Role, Sink
from indexer.sources.protocol import ChangeSource
from indexer.state.changing import write_related, write_shop
from indexer.state.schema import Origin, Presence
from indexer.state.state import State, database_uri
from indexer.state.states import States

_WAIT_S: Final = 60.0
# Changes that the live state took and the other one may not have, as of a stream that can't be read again; and shops
# that are hidden by now, however that became known.
_SHOPS_SINCE: Final = f"""
SELECT now.id FROM newer.shops AS now LEFT JOIN main.shops AS was ON was.id = now.id
WHERE (now.origin = {Origin.CHANGE:d} AND (was.id IS NULL OR (now.kind, now.number) > (was.kind, was.number)))
   OR (NOT now.shown AND now.presence <> {Presence.MISSING:d} AND was.shown
       AND (now.kind = 0 OR (now.kind, now.number) >= (was.kind, was.number)))
"""
_BELONGINGS_SINCE: Final = f"""
SELECT now.type, now.key FROM newer.belongings AS now
LEFT JOIN main.belongings AS was ON was.type = now.type AND was.key = now.key
WHERE now.origin = {Origin.CHANGE:d} AND (was.key IS NULL OR (now.kind, now.number) > (was.kind, was.number))
"""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did.

    Attributes:
        stamp: of the generation that is live now.
        left: the generation that was live before; it is the previous one now.
        changes: that were applied to the generation before it was published.
        since: records that were taken over from the state of the one that was left.
    """

    stamp: Stamp
    left: str
    changes: CaughtUp
    since: int


def roll_back(
    sink: Sink,
    states: States,
    changes: ChangeSource | None,
    *,
    wait: float = _WAIT_S,
    dry_run: bool = False,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RolledBack:
    """Publish the previous generation again.

    Args:
        sink: where the generations are.
        states: their states.
        changes: those since then, where they can be read again.
        wait: seconds to wait while another job has the lease.
        dry_run: only say what would be published.
        clock: the time.

    Raises:
        StateError: a state is lost, so that nobody knows what has been hidden since.
        CatalogueError: the changes can't be read.
        SinkError: there is no previous generation that can be read, or the engine failed.
    """
    lease = sink.lease()
    with holding(lease, "rollback", wait):
        live, previous, stamp = _both(sink)
        if dry_run:
            return RolledBack(stamp, live.name, CaughtUp(0, 0, 0), 0)
        letters = DeadLetters(states.dead_letters)
        states.open(live.name).close()  # without it nobody knows what has been hidden
        kept = KeptLive(sink, states, live.stamp, letters, lease.check).following(changes, shared=True)
        try:
            announce(sink, previous.name, lambda: _meanwhile(lease, kept))
        finally:
            kept.close()
        state = states.open(previous.name)
        editor = sink.edit(previous.name)
        try:
            caught_up = Follower(state, editor, changes, letters, lease.check, clock).drain()
            since = _take_since(state, states, live.name)
            update(state, editor, lease.check, clock)
            hand_over(sink, live.name, state, editor)
            stamp = editor.stamp
        finally:
            editor.close()
            state.close()
            letters.close()
        lease.check()
        sink.publish(previous.name, live.name)
        # Published is published: the next job marks what this one could not.
        with suppress(SinkError):
            sink.retire(live.name, clock())
        return RolledBack(stamp, live.name, caught_up, since)


def _meanwhile(lease: Lease, live: LiveFollower) -> None:
    lease.check()
    live.tick()


def _both(sink: Sink) -> tuple[Generation, Generation, Stamp]:
    by_role = {found.role: found for found in sink.generations()}
    live, previous = by_role.get(Role.LIVE), by_role.get(Role.PREVIOUS)
    if live is None or previous is None or previous.stamp is None:
        raise SinkError("there is no previous generation to go back to")
    if not previous.stamp.readable:
        raise SinkError(
            f"the previous generation has schema version {previous.stamp.schema_version}, services of this version read"
            f" {SCHEMA_VERSION} only: build anew"
        )
    return live, previous, previous.stamp


def _take_since(state: State, states: States, newer: str) -> int:
    """Take over what the newer state knows of changes and of hidden shops; returns how many records."""
    db = state.connection
    db.execute("ATTACH DATABASE ? AS newer", (database_uri(states.path(newer), "ro"),))
    try:
        shops = [shop_id for (shop_id,) in db.execute(_SHOPS_SINCE)]
        related_records = list(db.execute(_BELONGINGS_SINCE))
    finally:
        db.execute("DETACH DATABASE newer")
    with states.open(newer) as known, state.transaction():
        for shop_id in shops:
            if (row := known.shops.row(shop_id)) is not None:
                write_shop(state, row)
        for kind, key in related_records:
            if (found := known.related_records.row(kind, key)) is not None:
                write_related(state, found)
    return len(shops) + len(related_records)
