"""Aliases and stamp of an OpenSearch place that do not agree on what is live: found, and put right (G1).

Publishing moves all aliases at once, so only somebody else can have torn them apart. The stamp's alias is the truth.
Where it is gone or leads to several places, what all other aliases agree on is.
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
from indexer.sinks.opensearch.typeahead import local_files
from indexer.sinks.renewal import renewed
from indexer.sinks.typeahead.build import rebuild_typeahead
from indexer.sinks.typeahead.store import TypeaheadStore


@dataclass(frozen=True, slots=True)
class _Aliases:
    """Where each kind's alias leads, and the generation that is live; None when nothing is."""

    leading: Mapping[str, frozenset[str]]
    live: str | None

    def astray(self, prefix: str) -> tuple[str, ...]:
        if self.live is None:
            return ()
        wanted = {kind: {index_name(prefix, kind, self.live)} for kind in (*DOCUMENTS, STAMP)}
        return tuple(kind for kind, names in wanted.items() if self.leading[kind] != names)


def alias_drift(client: OpenSearch, prefix: str) -> tuple[str, ...]:
    """The kinds whose alias does not lead to the live generation; `stamp` also if that names another generation.

    Raises:
        SinkError: which generation is live can't be told, or the cluster does not answer.
    """
    aliases = _aliases(client, prefix)
    astray = aliases.astray(prefix)
    if aliases.live is None or STAMP in astray:
        return astray
    return astray if _stamp(client, prefix, aliases.live).generation == aliases.live else (*astray, STAMP)


def repair_aliases(client: OpenSearch, prefix: str, store_of: Callable[[str], TypeaheadStore]) -> None:
    """Lead all aliases to the live generation in one step, and write its stamp again if it is another one's.

    Args:
        client: asks the cluster.
        prefix: what all index names begin with.
        store_of: gives the store of a generation's typeahead.

    Raises:
        SinkError: that can't be done; the aliases are as they were.
    """
    aliases = _aliases(client, prefix)
    actions = _actions(aliases, aliases.astray(prefix), prefix)
    try:
        if actions:
            client.indices.update_aliases(body={"actions": actions})
        if aliases.live is not None:
            _mend_stamp(client, prefix, aliases.live, store_of)
    except OpenSearchException as error:
        raise SinkError(f"the aliases could not be put right: {type(error).__name__}") from error


def _actions(aliases: _Aliases, astray: Collection[str], prefix: str) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for kind in astray:
        alias, right = alias_name(prefix, kind), index_name(prefix, kind, str(aliases.live))
        wrong = sorted(aliases.leading[kind] - {right})
        actions += ({"remove": {"index": name, "alias": alias, "must_exist": True}} for name in wrong)
        actions.append({"add": {"index": right, "alias": alias, "is_write_index": True}})
    return actions


def _mend_stamp(client: OpenSearch, prefix: str, live: str, store_of: Callable[[str], TypeaheadStore]) -> None:
    found = _stamp(client, prefix, live)
    if found.generation == live:
        return
    reader = OpenSearchReader(client, prefix, live)
    with local_files():
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
    leading = {
        kind: frozenset(name for name, about in found.items() if alias_name(prefix, kind) in about["aliases"])
        for kind in (*DOCUMENTS, STAMP)
    }
    return _Aliases(leading, _live(leading, prefix))


def _live(leading: Mapping[str, frozenset[str]], prefix: str) -> str | None:
    if not any(leading.values()):
        return None
    if len(leading[STAMP]) == 1:
        candidates = _generations(prefix, STAMP, leading[STAMP])
    else:
        candidates = frozenset.intersection(*(_generations(prefix, kind, leading[kind]) for kind in DOCUMENTS))
        if leading[STAMP]:
            candidates &= _generations(prefix, STAMP, leading[STAMP])
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
