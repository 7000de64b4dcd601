"""Taking changes from where a state stands: into the state alone, or through it into a generation (G3).

The position is saved in the transaction of the changes, so none is lost or forgotten, wherever it ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from indexer.jobs.pace import MICRO_BATCH
from indexer.jobs.update import update
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.protocol import GenerationEditor
from indexer.sources.protocol import ChangeSource
from indexer.state.changing import apply_changes
from indexer.state.state import State


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What came of some changes.

    Attributes:
        applied: how many changed something.
        older: how many were no news, repeated ones included.
        refused: how many can't be applied, or whose documents the engine refused; they are dead letters.
        written, removed: documents.
        updates: how often the stamp rose.
        more: whether more changes are there already.
    """

    applied: int
    older: int
    refused: int
    written: int = 0
    removed: int = 0
    updates: int = 0
    more: bool = False

    def __add__(self, other: "CaughtUp") -> "CaughtUp":
        return CaughtUp(
            self.applied + other.applied,
            self.older + other.older,
            self.refused + other.refused,
            self.written + other.written,
            self.removed + other.removed,
            self.updates + other.updates,
            other.more,
        )


NOTHING: Final = CaughtUp(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Follower:
    """What takes changes into a generation.

    Attributes:
        state: of the generation.
        editor: of the same generation.
        changes: where they come from; None when only what is pending is to be done.
        letters: takes those that can't be applied.
        check: raises when the lease is lost.
    """

    state: State
    editor: GenerationEditor
    changes: ChangeSource | None
    letters: DeadLetters
    check: Callable[[], None]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def step(self, most: int = MICRO_BATCH) -> CaughtUp:
        """One micro-batch: all that is there, up to `most` changes.

        Raises:
            CatalogueError: the changes can't be read now.
            SinkError: the engine failed; what was taken is pending, and the next step does it.
        """
        taken = NOTHING if self.changes is None else take(self.state, self.changes, self.letters, most)
        done = update(self.state, self.editor, self.check, self.clock)
        rose = int(bool(done.written or done.removed or done.refused))
        return taken + CaughtUp(0, 0, done.refused, done.written, done.removed, rose, more=taken.more)

    def drain(self) -> CaughtUp:
        """Steps until nothing more is there. Errors as in `step`."""
        total = self.step()
        while total.more:
            total += self.step()
        return total


def take(state: State, changes: ChangeSource, letters: DeadLetters, most: int) -> CaughtUp:
    """Take some changes into a state; their documents are pending then."""
    batch = changes.read(state.position, most)
    with state.transaction():
        # A dead letter may come twice, after a crash; it must not be missing.
        for refused in batch.refused:
            letters.add_change(refused)
        applied = apply_changes(state, batch.changes)
        state.position = batch.position
    return CaughtUp(applied.applied, applied.older, len(batch.refused), more=batch.more)


def replay(state: State, changes: ChangeSource, letters: DeadLetters) -> CaughtUp:
    """Take all changes that are there into a state."""
    total = take(state, changes, letters, MICRO_BATCH)
    while total.more:
        total += take(state, changes, letters, MICRO_BATCH)
    return total
