"""What is kept of old generations: the previous one for a rollback, retired ones while readers may need them (G2).

A generation that was never published is what a killed build left; the next job, which has the lease, removes it.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from indexer.sinks.protocol import Generation, Role, Sink
from indexer.state.states import States

GRACE: Final = timedelta(seconds=60)


def remove_remains(sink: Sink, states: States | None, now: datetime) -> tuple[str, ...]:
    """Remove what earlier jobs left unfinished; call it under the lease, before anything of one's own is there.

    Returns:
        The removed generations.

    Raises:
        SinkError: the engine failed.
    """
    there = sink.generations()
    remains = tuple(found.name for found in there if found.role is Role.UNFINISHED)
    for name in remains:
        sink.drop(name)
    for found in there:
        if found.role is Role.PREVIOUS and found.retired_at is None:
            sink.retire(found.name, now)  # its successor's job was killed before it could
    if states is not None:
        states.prune({found.name for found in there} - set(remains))
        states.remove_torn(now)
    return remains


def prune(
    sink: Sink, states: States | None, now: datetime, *, keep_previous: bool = True, grace: timedelta = GRACE
) -> tuple[str, ...]:
    """Remove generations that have not been live for a while.

    Args:
        sink: where they are.
        states: goes with them.
        now: the time.
        keep_previous: whether the previous generation stays, for a rollback.
        grace: how long after its retirement a generation stays; a request may still be reading it.

    Returns:
        The removed generations.

    Raises:
        SinkError: the engine failed.
    """
    there = sink.generations()
    removed = tuple(found.name for found in there if is_due(found, now, keep_previous=keep_previous, grace=grace))
    for name in removed:
        sink.drop(name)
    if states is not None:
        states.prune(_names(there) - set(removed))
    return removed


def is_due(found: Generation, now: datetime, *, keep_previous: bool, grace: timedelta = GRACE) -> bool:
    """Whether a generation may be removed."""
    if found.role is Role.LIVE or (found.role is Role.PREVIOUS and keep_previous):
        return False
    return found.retired_at is not None and now.astimezone(UTC) - found.retired_at >= grace


def _names(generations: Collection[Generation]) -> set[str]:
    return {found.name for found in generations}
