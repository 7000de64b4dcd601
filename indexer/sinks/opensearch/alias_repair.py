"""Finds and repairs aliases and a stamp that do not agree on the live generation (G1).

Publishing moves all aliases together, so only another program can cause this. The alias of the stamp decides; if it is
gone or leads to several indices, the generation that all other aliases agree on.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, index_name, is_generation
from indexer.sinks.failures import SinkError
from indexer.sinks.opensearch.reading import OpenSearchReader
from indexer.sinks.protocol import renewed
from indexer.sinks.typeahead.build import rebuild_typeahead
from indexer.sinks.typeahead.editor import typeahead_errors
from indexer.sinks.typeahead.store import TypeaheadStore


@dataclass(frozen=True, slots=True)
class _Aliases:
    """The indices of each kind's alias, and the live generation; None if there is none."""

    indices: Mapping[str, frozenset[str]]
    live: str | None

    def drifted(self, prefix: str) -> tuple[str, ...]:
        if self.live is None:
            return ()
        expected = {kind: {index_name(prefix, kind, self.live)} for kind in (*DOCUMENTS, STAMP)}
        return tuple(kind for kind, names in expected.items() if self.indices[kind] != names)


def alias_drift(client: OpenSearch, prefix: str) -> tuple[str, ...]:
    """The kinds whose alias does not lead to the live generation; `stamp` also if that names another generation.

    Raises:
        SinkError: it is unknown which generation is live, or the cluster does not answer.
    """
    aliases = _aliases(client, prefix)
    drifted = aliases.drifted(prefix)
    if aliases.live is None or STAMP in drifted:
        return drifted
    return drifted if _stamp(client, prefix, aliases.live).generation == aliases.live else (*drifted, STAMP)


def repair_aliases(client: OpenSearch, prefix: str, store_of: Callable[[str], TypeaheadStore]) -> None:
    """Lead all aliases to the live generation in one step, and replace its stamp if that names another one.

    Raises:
        SinkError: the repair failed.
    """
    aliases = _aliases(client, prefix)
    actions = _actions(aliases, aliases.drifted(prefix), prefix)
    try:
        if actions:
            client.indices.update_aliases(body={"actions": actions})
        if aliases.live is not None:
            _repair_stamp(client, prefix, aliases.live, store_of)
    except OpenSearchException as error:
        raise SinkError(f"the aliases could not be repaired: {type(error).__name__}") from error


def _actions(aliases: _Aliases, drifted: Collection[str], prefix: str) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for kind in drifted:
        alias, expected = alias_name(prefix, kind), index_name(prefix, kind, str(aliases.live))
        wrong = sorted(aliases.indices[kind] - {expected})
        actions += ({"remove": {"index": name, "alias": alias, "must_exist": True}} for name in wrong)
        actions.append({"add": {"index": expected, "alias": alias, "is_write_index": True}})
    return actions


def _repair_stamp(client: OpenSearch, prefix: str, live: str, store_of: Callable[[str], TypeaheadStore]) -> None:
    found = _stamp(client, prefix, live)
    if found.generation == live:
        return
    reader = OpenSearchReader(client, prefix, live)
    with typeahead_errors():
        typeahead = rebuild_typeahead(reader, store_of(live))
    stamp = renewed(found, live, {kind: reader.count(kind) for kind in DOCUMENTS}, typeahead)
    body, params = {"stamp": stamp.as_wire()}, {"refresh": "true"}
    client.index(index=index_name(prefix, STAMP, live), id=STAMP_ID, body=body, params=params)


def _aliases(client: OpenSearch, prefix: str) -> _Aliases:
    try:
        found = client.indices.get_alias(name=f"{prefix}-*", params={"expand_wildcards": "all"})
    except NotFoundError:
        found = {}
    except OpenSearchException as error:
        raise SinkError(f"the aliases cannot be read: {type(error).__name__}") from error
    indices = {
        kind: frozenset(name for name, about in found.items() if alias_name(prefix, kind) in about["aliases"])
        for kind in (*DOCUMENTS, STAMP)
    }
    return _Aliases(indices, _live(indices, prefix))


def _live(indices: Mapping[str, frozenset[str]], prefix: str) -> str | None:
    if not any(indices.values()):
        return None
    if len(indices[STAMP]) == 1:
        candidates = _generations(prefix, STAMP, indices[STAMP])
    else:
        candidates = frozenset.intersection(*(_generations(prefix, kind, indices[kind]) for kind in DOCUMENTS))
        if indices[STAMP]:
            candidates &= _generations(prefix, STAMP, indices[STAMP])
    if len(candidates) != 1:
        raise SinkError("the aliases do not say which generation is live: publish one by a full build")
    (live,) = candidates
    return live


def _generations(prefix: str, kind: str, names: Collection[str]) -> frozenset[str]:
    before = index_name(prefix, kind, "")
    return frozenset(found for name in names if is_generation(found := name.removeprefix(before)))


def _stamp(client: OpenSearch, prefix: str, generation: str) -> Stamp:
    try:
        return Stamp.from_wire(client.get(index=index_name(prefix, STAMP, generation), id=STAMP_ID)["_source"]["stamp"])
    except (OpenSearchException, ValueError, KeyError, TypeError) as error:
        raise SinkError(f"the stamp of {generation} cannot be read: {type(error).__name__}") from error
