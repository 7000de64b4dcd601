"""Bringing a generation up to its state: what is pending is written and shown, and the stamp rises (C1, G3).

What leaves goes first. Nothing is crossed out before readers can see it, so whatever fails is done again. Outside
accounts are in no answer that is kept by the stamp, so the stamp does not rise for them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from index_mappings.documents import DOCUMENTS
from indexer.jobs.operations import write_accounts
from indexer.projection.generation import Projector
from indexer.sinks.protocol import GenerationEditor
from indexer.state.pending import ACCOUNTS, REMOVED_SHOPS
from indexer.state.state import State

_BATCH: Final = 1_000
_OF_SHOPS: Final = ("coupons", "offers")


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did.

    Attributes:
        written, removed: documents.
        refused: documents that the engine will not take; they are in the dead-letter file.
        sequence: of the stamp afterwards.
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
) -> Updated:
    """Write what is pending, show it, and raise the stamp.

    Args:
        state: has been changed; its transaction is committed.
        editor: the generation that belongs to it.
        check: raises when the lease is lost; asked before each write.
        clock: for the stamp.

    Raises:
        SinkError: the engine failed; all is still pending, and doing it again is safe.
    """
    if state.pending.has(ACCOUNTS):
        check()
        write_accounts(state, editor)
        state.pending.clear(ACCOUNTS)
    if not state.pending.count():
        return Updated(0, 0, 0, editor.stamp.sequence)
    written = removed = refused = 0
    projector = Projector(state)
    for shop_ids in state.pending.batches(REMOVED_SHOPS, _BATCH):
        gone = [shop_id for shop_id in shop_ids if state.shops.public(shop_id) is None]
        for kind in _OF_SHOPS:
            check()
            editor.remove_of_shops(kind, gone)
    for kind in DOCUMENTS:
        for ids in state.pending.batches(kind, _BATCH):
            projected = {document_id: projector.document(kind, document_id) for document_id in ids}
            documents = [document for document in projected.values() if document is not None]
            leaving = [document_id for document_id, document in projected.items() if document is None]
            check()
            refused += editor.write(kind, documents, leaving)
            written += len(documents)
            removed += len(leaving)
    check()
    editor.show()
    counts = {kind: editor.count(kind) for kind in DOCUMENTS}
    moment = f"{clock().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    before = editor.stamp
    editor.commit(
        replace(before, sequence=before.sequence + 1, built_at=moment, source_position=state.position).counted(counts)
    )
    with state.transaction():
        state.pending.clear()
    return Updated(written, removed, refused, editor.stamp.sequence)
