"""Compares one page of a generation with its state, in the order of the ids, in constant memory.

A difference is a fault only if it is seen twice; a pending document is not a fault, as the next update writes it.
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
# CROSS JOIN fixes the order of the tables: otherwise the planner sorts all related records for each page.
_RELATED: Final = """
SELECT key FROM belongings CROSS JOIN winners ON winners.id = owner
WHERE type = :kind AND key > :after ORDER BY key LIMIT :most
"""
_EXCUSED: Final = """
SELECT EXISTS (SELECT 1 FROM pending WHERE kind = :kind AND id = :id)
    OR EXISTS (SELECT 1 FROM temp.doubtful WHERE kind = :kind AND id = :id)
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One document with a fault.

    Attributes:
        fault: its class.
        kind, id: of the document.
        shop_id: the shop of a document that is not public; else None.
    """

    fault: Fault
    kind: str
    id: str
    shop_id: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The comparison of one page.

    Attributes:
        findings: the documents with faults.
        checked: the number of documents that were compared.
        after: the id after which the next page starts; None after the last page of the kind.
    """

    findings: tuple[Finding, ...]
    checked: int
    after: str | None


def compare_page(state: State, editor: GenerationEditor, kind: str, after: str, most: int) -> Page:
    """Compare the next documents of a kind, at most `most` on either side.

    Neither the state nor the generation may change during the comparison.

    Raises:
        SinkError: the engine failed.
    """
    first = _compare_once(state, editor, kind, after, most)
    if not first.findings:
        return first
    second = set(_compare_once(state, editor, kind, after, most).findings)
    return Page(tuple(finding for finding in first.findings if finding in second), first.checked, first.after)


def _compare_once(state: State, editor: GenerationEditor, kind: str, after: str, most: int) -> Page:
    indexed = editor.page(kind, after, most)
    wanted = _wanted(state, kind, after, most)
    # A document beyond the end of a full page may be on the next one: both sides stop at the lower end.
    ends = [wanted[-1]] if len(wanted) == most else []
    if len(indexed) == most:
        ends += [stored["id"] for _, stored in reversed(indexed) if "id" in stored][:1]
    end = min(ends, default=None)
    if end is not None:
        wanted = [found for found in wanted if found <= end]
        indexed = [(found, stored) for found, stored in indexed if "id" in stored and stored["id"] <= end]
    shown = _shown(editor, after, end) if kind == "shops" else None
    found = _differences(state, kind, indexed, wanted, shown)
    findings = tuple(finding for finding in found if not _excused(state, finding))
    return Page(findings, len({document_id for document_id, _ in indexed}.union(wanted)), end)


def _shown(editor: GenerationEditor, after: str, end: str | None) -> Mapping[str, Shown] | None:
    """What suggestions show of the shops of a page; None where its files are damaged, which is reported as a fault."""
    try:
        return editor.typeahead_shown(after, end)
    except TypeaheadDamagedError:
        return None


def _wanted(state: State, kind: str, after: str, most: int) -> list[str]:
    match kind:
        case "shops" | "facts":
            query = _SHOPS
        case "categories":
            query = _CATEGORIES
        case _:
            query = _RELATED
    parameters = {"kind": kind, "after": after, "most": most}
    return [found for (found,) in state.connection.execute(query, parameters)]


def _differences(
    state: State,
    kind: str,
    indexed: list[tuple[str, dict[str, Any]]],
    wanted: list[str],
    shown: Mapping[str, Shown] | None,
) -> Iterator[Finding]:
    projector = Projector(state)
    copies = Counter(found for found, _ in indexed)
    stored = dict(indexed)
    for document_id in wanted:
        document = projector.document(kind, document_id)
        if copies[document_id] == 0 or (shown is not None and document_id not in shown):
            yield Finding(Fault.MISSING, kind, document_id)
        elif copies[document_id] > 1 or not _same(
            document, stored[document_id], None if shown is None else shown[document_id]
        ):
            yield Finding(Fault.STALE, kind, document_id)
    for document_id in (stored.keys() | (shown or {}).keys()) - set(wanted):
        if projector.document(kind, document_id) is not None:
            yield Finding(Fault.STALE, kind, document_id)  # it is stored under another id
        else:
            yield _unwanted(state, kind, document_id)


def _same(document: object | None, stored: dict[str, Any], shown: Shown | None) -> bool:
    """Whether what is stored, and for a shop what suggestions show, equals the document."""
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
