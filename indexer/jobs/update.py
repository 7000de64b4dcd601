"""Brings a generation up to its state: pending documents are written and shown, and the stamp rises (C1, G3).

Deletes run first; pending rows are cleared after the refresh, so a failed update is repeated. The stamp does not rise
for outside accounts, as no answer that is cached by the stamp holds any.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.documents import DOCUMENTS
from indexer.jobs.follower_status import write_accounts
from indexer.projection.generation import Projector
from indexer.sinks.protocol import GenerationEditor
from indexer.state.pending import ACCOUNTS, REMOVED_SHOPS
from indexer.state.state import State

_BATCH: Final = 1_000
_OWNED_KINDS: Final = ("coupons", "offers")


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What an update did.

    Attributes:
        written, removed: documents.
        refused: documents that the engine rejected; they are in the dead-letter file.
        sequence: of the new stamp.
    """

    written: int
    removed: int
    refused: int
    sequence: int


def update(
    state: State,
    editor: GenerationEditor,
    check: Callable[[], None],
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> UpdateResult:
    """Write the pending documents, show them, and raise the stamp.

    Args:
        state: the state with pending documents; its transaction is committed.
        editor: of the same generation.
        check: raises when the lease is lost; called before each write.
        clock: for the stamp.

    Raises:
        SinkError: the engine failed; all documents are still pending, and an update can be repeated safely.
    """
    if state.pending.has(ACCOUNTS):
        check()
        write_accounts(state, editor)
        state.pending.clear(ACCOUNTS)
    if not state.pending.count():
        return UpdateResult(0, 0, 0, editor.stamp.sequence)
    written = removed = refused = 0
    projector = Projector(state)
    for shop_ids in state.pending.batches(REMOVED_SHOPS, _BATCH):
        hidden = [shop_id for shop_id in shop_ids if state.shops.public(shop_id) is None]
        for kind in _OWNED_KINDS:
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
    built_at = f"{clock().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    stamp = replace(editor.stamp, sequence=editor.stamp.sequence + 1, built_at=built_at, source_position=state.position)
    editor.commit(stamp.counted(counts))
    with state.transaction():
        state.pending.clear()
    return UpdateResult(written, removed, refused, editor.stamp.sequence)
