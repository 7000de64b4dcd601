"""Applies changes from a state's position on: to the state alone, or through it to a generation (G3).

The position is saved in the transaction of the changes, so an interruption at any point loses none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from indexer.jobs.pace import MICRO_BATCH
from indexer.jobs.update import NOTHING, ChangeCounts, update
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.protocol import GenerationEditor
from indexer.sources.protocol import ChangeSource
from indexer.state.changing import apply_changes
from indexer.state.state import State


@dataclass(frozen=True, slots=True)
class ChangeApplier:
    """Applies changes to a generation, in micro-batches.

    Attributes:
        state: of the generation.
        editor: of the same generation.
        changes: their source; None when only pending documents are to be written.
        letters: takes changes that can't be applied.
        check: raises when the lease is lost.
    """

    state: State
    editor: GenerationEditor
    changes: ChangeSource | None
    letters: DeadLetters
    check: Callable[[], None]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def step(self, most: int = MICRO_BATCH) -> ChangeCounts:
        """Apply one micro-batch: all available changes, up to `most`.

        Raises:
            CatalogueError: the changes can't be read now.
            SinkError: the engine failed; what was taken into the state is pending, and the next step writes it.
        """
        applied = NOTHING if self.changes is None else _apply_batch(self.state, self.changes, self.letters, most)
        return update(self.state, self.editor, self.check, self.clock) + applied

    def drain(self) -> ChangeCounts:
        """Apply all available changes. Errors as in `step`."""
        total = self.step()
        while total.more:
            total += self.step()
        return total


def replay(state: State, changes: ChangeSource, letters: DeadLetters) -> ChangeCounts:
    """Apply all available changes to a state; their documents are pending then."""
    total = _apply_batch(state, changes, letters, MICRO_BATCH)
    while total.more:
        total += _apply_batch(state, changes, letters, MICRO_BATCH)
    return total


def _apply_batch(state: State, changes: ChangeSource, letters: DeadLetters, most: int) -> ChangeCounts:
    batch = changes.read(state.position, most)
    with state.transaction():
        # After a crash a dead letter may be written twice; it must never be missing.
        for refused in batch.refused:
            letters.add_change(refused)
        applied = apply_changes(state, batch.changes)
        state.position = batch.position
    return ChangeCounts(applied, len(batch.changes) - applied, len(batch.refused), more=batch.more)
