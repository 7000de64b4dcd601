"""Removes old generations, except the previous one, for a rollback, and those that readers may still need (G2).

An unfinished generation was left by a killed build; the next job, which has the lease, removes it.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from indexer.sinks.protocol import Generation, Role, Sink
from indexer.state.state import States

GRACE: Final = timedelta(seconds=60)


def remove_unfinished(sink: Sink, states: States | None, now: datetime) -> tuple[str, ...]:
    """Remove the unfinished generations of earlier jobs; call it under the lease, before starting a generation.

    Returns the removed generations.
    """
    generations = sink.generations()
    unfinished = tuple(found.name for found in generations if found.role is Role.UNFINISHED)
    for name in unfinished:
        sink.drop(name)
    for found in generations:
        if found.role is Role.PREVIOUS and found.retired_at is None:
            sink.retire(found.name, now)  # the job that replaced it was killed before this step
    if states is not None:
        keep = {found.name for found in generations} - set(unfinished)
        if all(found.role is not Role.LIVE for found in generations) and (newest := states.newest_sealed()):
            # The engine has lost the live generation, or does not say which it is; its state knows what is hidden.
            keep.add(newest)
        states.prune(keep)
        states.remove_torn(now)
    return unfinished


def prune(sink: Sink, states: States | None, now: datetime, *, keep_previous: bool = True) -> tuple[str, ...]:
    """Remove generations with their states, if they were retired at least a minute ago: requests may still read others.

    With `keep_previous` the previous generation is retained, for a rollback. Returns the removed generations.
    """
    generations = sink.generations()
    removed = tuple(found.name for found in generations if is_due(found, now, keep_previous=keep_previous))
    for name in removed:
        sink.drop(name)
    if states is not None:
        states.prune({found.name for found in generations} - set(removed))
    return removed


def is_due(found: Generation, now: datetime, *, keep_previous: bool) -> bool:
    """Whether a generation may be removed."""
    if found.role is Role.LIVE or (found.role is Role.PREVIOUS and keep_previous):
        return False
    return found.retired_at is not None and now.astimezone(UTC) - found.retired_at >= GRACE
