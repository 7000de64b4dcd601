"""Compares one page of a generation with its state, in the order of the ids, in constant memory.

Nothing is held to be at fault that was not seen twice, nor anything that is pending: that is known already.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from index_mappings.documents import ShopDocument, stored_part
from index_mappings.typeahead.segment import Shown, shown_part
from indexer.projection.generation import Projector
from indexer.reconcile.findings import Fault
from indexer.sinks.failures import TypeaheadDamagedError
from indexer.sinks.protocol import GenerationEditor
from indexer.state.state import State

_SHOPS: Final = "SELECT id FROM winners WHERE id > :after ORDER BY id LIMIT :most"
_CATEGORIES: Final = "SELECT DISTINCT slug FROM category_names WHERE slug > :after ORDER BY slug LIMIT :most"
# The order of the tables is fixed: the planner would rather sort all belongings for each page.
_BELONGINGS: Final = """
SELECT key FROM belongings CROSS JOIN winners ON winners.id = owner
WHERE type = :kind AND key > :after ORDER BY key LIMIT :most
"""
_EXCUSED: Final = """
SELECT EXISTS (SELECT 1 FROM pending WHERE kind = :kind AND id = :id)
    OR EXISTS (SELECT 1 FROM temp.doubtful WHERE kind = :kind AND id = :id)
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One document that is not as it must be.

    Attributes:
        fault: how.
        kind, id: which one.
        shop_id: of what is not public: whose it is.
    """

    fault: Fault
    kind: str
    id: str
    shop_id: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What a page showed.

    Attributes:
        findings: what is not as it must be.
        checked: how many documents were compared.
        after: the id after which the next page begins; None when the kind has been gone through.
    """

    findings: tuple[Finding, ...]
    checked: int
    after: str | None


def compare_page(state: State, editor: GenerationEditor, kind: str, after: str, most: int) -> Page:
    """Compare the next documents of a kind.

    Args:
        state: nothing may change it meanwhile, nor the generation.
        editor: of the generation that belongs to the state.
        kind: the kind.
        after: where the page begins.
        most: how many documents to look at, on either side.

    Raises:
        SinkError: the engine failed.
    """
    looked = _look(state, editor, kind, after, most)
    if not looked.findings:
        return looked
    again = set(_look(state, editor, kind, after, most).findings)
    return Page(tuple(finding for finding in looked.findings if finding in again), looked.checked, looked.after)


def _look(state: State, editor: GenerationEditor, kind: str, after: str, most: int) -> Page:
    there = editor.page(kind, after, most)
    wanted = _wanted(state, kind, after, most)
    # What lies beyond the end of a full page may be on the next one: both sides stop at the nearer end.
    ends = [wanted[-1]] if len(wanted) == most else []
    if len(there) == most:
        ends += [stored["id"] for _, stored in reversed(there) if "id" in stored][:1]
    end = min(ends, default=None)
    if end is not None:
        wanted = [found for found in wanted if found <= end]
        there = [(found, stored) for found, stored in there if "id" in stored and stored["id"] <= end]
    shown = _shown(editor, after, end) if kind == "shops" else None
    found = _differences(state, kind, there, wanted, shown)
    findings = tuple(finding for finding in found if not _excused(state, finding))
    return Page(findings, len({document_id for document_id, _ in there}.union(wanted)), end)


def _shown(editor: GenerationEditor, after: str, end: str | None) -> Mapping[str, Shown] | None:
    """What suggestions show of the shops of a page; None where damaged files, a fault of their own, do not say it."""
    try:
        return editor.typeahead_shown(after, end)
    except TypeaheadDamagedError:
        return None


def _wanted(state: State, kind: str, after: str, most: int) -> list[str]:
    match kind:
        case "shops" | "facts":
            asked = _SHOPS
        case "categories":
            asked = _CATEGORIES
        case _:
            asked = _BELONGINGS
    given = {"kind": kind, "after": after, "most": most}
    return [found for (found,) in state.connection.execute(asked, given)]


def _differences(
    state: State,
    kind: str,
    there: list[tuple[str, dict[str, Any]]],
    wanted: list[str],
    shown: Mapping[str, Shown] | None,
) -> Iterator[Finding]:
    projector = Projector(state)
    times = Counter(found for found, _ in there)
    stored = dict(there)
    for document_id in wanted:
        document = projector.document(kind, document_id)
        if times[document_id] == 0 or (shown is not None and document_id not in shown):
            yield Finding(Fault.MISSING, kind, document_id)
        elif times[document_id] > 1 or not _same(
            document, stored[document_id], None if shown is None else shown[document_id]
        ):
            yield Finding(Fault.STALE, kind, document_id)
    for document_id in (stored.keys() | (shown or {}).keys()) - set(wanted):
        if projector.document(kind, document_id) is not None:
            yield Finding(Fault.STALE, kind, document_id)  # it lies where another id belongs
        else:
            yield _unwanted(state, kind, document_id)


def _same(document: object | None, stored: dict[str, Any], shown: Shown | None) -> bool:
    """Whether what is stored, and of a shop what suggestions show, are a document's."""
    if document is None or stored != stored_part(document):
        return False
    return shown is None or shown == shown_part(cast("ShopDocument", document))


def _unwanted(state: State, kind: str, document_id: str) -> Finding:
    owner: str | None = None
    if kind in {"shops", "facts"}:
        owner = None if state.shops.row(document_id) is None else document_id
    elif kind != "categories":
        row = state.related_records.row(kind, document_id)
        owner = None if row is None else row.owner
    return Finding(Fault.GHOST if owner is None else Fault.NOT_PUBLIC, kind, document_id, owner)


def _excused(state: State, finding: Finding) -> bool:
    (excused,) = state.connection.execute(_EXCUSED, {"kind": finding.kind, "id": finding.id}).fetchone()
    return bool(excused)
