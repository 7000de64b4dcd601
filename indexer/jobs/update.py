"""Brings a generation up to its state: pending documents are written and shown, and the stamp rises (C1, G3).

Deletes run first; pending rows are cleared after the refresh, so a failed update is repeated. The stamp does not rise
for outside accounts, as no answer that is cached by the stamp holds any.

Changes are applied from the state's position on, which is saved in their transaction, so no interruption loses any.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.documents import DOCUMENTS
from indexer.jobs.defaults import MICRO_BATCH
from indexer.jobs.follower_status import operations_of
from indexer.projection import Projector
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.protocol import GenerationEditor
from indexer.sources.protocol import ChangeSource
from indexer.state.changing import OWNED_KINDS, apply_changes, apply_hiding, apply_marks
from indexer.state.marks import marks_size
from indexer.state.rows import Origin
from indexer.state.state import ACCOUNTS, MARKS_POSITION, REMOVED_SHOPS, State

_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """The outcome of some changes, or of an update.

    The state had `older` changes already, in this version or a newer one; of these it had `known` exactly as they are,
    such as rows of a database that were read again. `refused` changes can't be applied, or the engine refused their
    documents; they are dead letters, and `first_refused` has the location and the reasons of the first such change.
    `updates` is how often the stamp's sequence rose. `more` says whether more changes are available already.
    """

    applied: int = 0
    older: int = 0
    refused: int = 0
    written: int = 0
    removed: int = 0
    updates: int = 0
    more: bool = False
    known: int = 0
    first_refused: str = ""

    @property
    def details(self) -> str:
        """What follows the counts in a text: how many were known, and the first refusal, in parentheses."""
        known = f"{self.known:,} of the older ones were known as they are" if self.known else ""
        first = f"first refused: {self.first_refused}" if self.first_refused else ""
        return f" ({'; '.join(filter(None, (known, first)))})" if known or first else ""

    def as_wire(self) -> dict[str, int]:
        """The counts of changes as `--json` prints them."""
        return {"applied": self.applied, "older": self.older, "refused": self.refused}

    def __add__(self, other: "ChangeCounts") -> "ChangeCounts":
        return ChangeCounts(
            self.applied + other.applied,
            self.older + other.older,
            self.refused + other.refused,
            self.written + other.written,
            self.removed + other.removed,
            self.updates + other.updates,
            other.more,
            self.known + other.known,
            self.first_refused or other.first_refused,
        )


NOTHING: Final = ChangeCounts()


def update(state: State, editor: GenerationEditor, check: Callable[[], None]) -> ChangeCounts:
    """Write the pending documents, show them, and raise the stamp; the state's transaction is committed.

    `check` raises when the lease is lost; it is called before each write. After a SinkError all documents are still
    pending, and the update can be repeated safely.
    """
    if state.pending.has(ACCOUNTS):
        check()
        known = editor.operations()
        editor.write_operations(operations_of(state, None if known is None else known.follower))
        state.pending.clear(ACCOUNTS)
    if not state.pending.count():
        return NOTHING
    written = removed = refused = 0
    projector = Projector(state)
    for shop_ids in state.pending.batches(REMOVED_SHOPS, _BATCH):
        hidden = [shop_id for shop_id in shop_ids if state.public.shop(shop_id) is None]
        for kind in OWNED_KINDS:
            check()
            editor.remove_of_shops(kind, hidden)
    for kind in DOCUMENTS:
        for ids in state.pending.batches(kind, _BATCH):
            projected = {document_id: projector.document(kind, document_id) for document_id in ids}
            documents = [document for document in projected.values() if document is not None]
            removals = [document_id for document_id, document in projected.items() if document is None]
            check()
            refused += editor.write(kind, documents, removals)
            written += len(documents)
            removed += len(removals)
    check()
    editor.show()
    counts = {kind: editor.count(kind) for kind in DOCUMENTS}
    built_at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    stamp = replace(editor.stamp, sequence=editor.stamp.sequence + 1, built_at=built_at, source_position=state.position)
    editor.commit(stamp.counted(counts))
    with state.transaction():
        state.pending.clear()
    rose = bool(written or removed or refused)
    return ChangeCounts(refused=refused, written=written, removed=removed, updates=int(rose))


@dataclass(frozen=True, slots=True)
class ChangeApplier:
    """Applies changes to a generation, in micro-batches; without `changes` only the marks of `index hide` and `show`.

    `letters` takes changes that can't be applied; `check` raises when the lease is lost.
    """

    state: State
    editor: GenerationEditor
    changes: ChangeSource | None
    letters: DeadLetters
    check: Callable[[], None]

    def step(self, most: int = MICRO_BATCH) -> ChangeCounts:
        """Apply one micro-batch: all available changes, up to `most`, and all marks.

        Raises CatalogueError if the changes can't be read now; SinkError if the engine failed: what was taken into the
        state is pending then, and the next step writes it.
        """
        apply_marks(self.state)
        applied = NOTHING
        if self.changes is not None:
            applied = _apply_batch(self.state, self.changes, self.letters, most)
        return update(self.state, self.editor, self.check) + applied

    def drain(self) -> ChangeCounts:
        """Apply all available changes. Errors as in `step`."""
        total = self.step()
        while total.more:
            total += self.step()
        return total


def replay(state: State, changes: ChangeSource | None, letters: DeadLetters) -> ChangeCounts:
    """Apply the marks of `index hide` and all available changes to a state; their documents are pending then.

    A state in a separate directory has no marks.
    """
    apply_marks(state)
    total = NOTHING
    while changes is not None:
        total += _apply_batch(state, changes, letters, MICRO_BATCH)
        if not total.more:
            break
    return total


def is_behind(state: State) -> bool:
    """Whether readers do not see all of the state yet, or it lacks marks."""
    return bool(state.pending.count()) or (state.get(MARKS_POSITION) or "0") != str(marks_size(state.marks))


def _apply_batch(state: State, changes: ChangeSource, letters: DeadLetters, most: int) -> ChangeCounts:
    """Apply a micro-batch of changes from the state's position on, and move that."""
    former = state.position
    batch = changes.read(former, most)
    if batch.position == former and not (batch.changes or batch.refused or batch.missing):
        return ChangeCounts(more=batch.more)
    with state.transaction():
        # After a crash a dead letter may be written twice; it must never be missing.
        for refused in batch.refused:
            letters.add_change(refused)
        applied, known = apply_changes(state, batch.changes)
        for refused in batch.refused:
            if refused.hiding is not None:
                apply_hiding(state, refused.hiding, Origin.CHANGE)
        state.position = batch.position
        if batch.missing is not None:
            state.missing = batch.missing.joined(state.missing)
    first = next((f"{refused.location}: {'; '.join(refused.reasons)}" for refused in batch.refused), "")
    older = len(batch.changes) - applied
    return ChangeCounts(applied, older, len(batch.refused), more=batch.more, known=known, first_refused=first)
