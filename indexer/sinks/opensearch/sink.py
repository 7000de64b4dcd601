"""The OpenSearch sink: an index for each kind of a generation, published by one atomic change of all aliases (G1).

The replaced aliases must still exist (`must_exist`), so of two publishers the later one fails.
"""

import logging
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, OpenSearchException
from opensearchpy.exceptions import ConnectionError as NoConnection

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import (
    RETIRED_ID,
    STAMP,
    STAMP_ID,
    Stamp,
    alias_name,
    index_name,
    is_generation,
    previous_alias,
)
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.generation_typeahead import rebuilt
from indexer.sinks.opensearch.bulk_loading import BulkLoader, Pace
from indexer.sinks.opensearch.generation import ALIASED, KINDS, OpenSearchEditor, OpenSearchReader, OpenSearchWriter
from indexer.sinks.opensearch.lease import OpenSearchLease
from indexer.sinks.opensearch.retries import none_if_missing, retry_transient
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead, TypeaheadOptions
from indexer.sinks.protocol import STAMP_DRIFT, Generation, GenerationRole, renewed, with_roles
from shop_directory.settings.locations import OPEN_ACCESS, ClusterAccess
from shop_directory.typeahead.manifest import ANNOUNCED_ID, Announcement
from shop_directory.typeahead.writing.merging import BackgroundMerging

_TIMEOUT_S: Final = 60.0
_LEVELS: Final = ("transient", "persistent", "defaults")
_PARAMS: Final = {"include_defaults": "true", "filter_path": "*.search.allow_expensive_queries"}
_FIRST_RETRY_S: Final = 3.0
_LETTERS: Final = Path("var/dead-letters.ndjson")
DEFAULT_TYPEAHEAD: Final = TypeaheadOptions()


def open_client(urls: Sequence[str], access: ClusterAccess, connections: int) -> OpenSearch:
    """A client that connects with its first request, and does not retry, as its users do."""
    # The client would log whole requests, and a traceback for each retried one.
    logging.getLogger("opensearch").setLevel(logging.ERROR)
    logging.getLogger("opensearchpy.trace").setLevel(logging.WARNING)
    return OpenSearch(
        list(urls),
        timeout=_TIMEOUT_S,
        max_retries=0,
        retry_on_timeout=True,
        pool_maxsize=connections,
        headers=access.headers(),
        ssl_context=access.tls(),
    )


def check_cluster(client: OpenSearch) -> None:
    """Verify that the cluster's settings allow the queries of searches."""
    try:
        found: dict[str, Any] = client.cluster.get_settings(params=dict(_PARAMS))
    except (AuthorizationException, NoConnection):
        return  # not permitted, or reported by the next request
    except OpenSearchException as error:
        raise SinkError(f"the cluster's settings cannot be read: {type(error).__name__}") from error
    stated = (found.get(level, {}).get("search", {}).get("allow_expensive_queries") for level in _LEVELS)
    if str(next((value for value in stated if value is not None), "true")).lower() == "false":
        raise SinkError(
            "the cluster refuses the prefix queries of searches: "
            "set search.allow_expensive_queries to true, or remove it, in its settings"
        )


class OpenSearchSink:
    """Generations in a cluster."""

    def __init__(
        self,
        urls: Sequence[str],
        prefix: str,
        shards: int = 1,
        letters: Path = _LETTERS,
        pace: Pace | None = None,
        *,
        replicas: int | None = None,
        access: ClusterAccess = OPEN_ACCESS,
        typeahead: TypeaheadOptions = DEFAULT_TYPEAHEAD,
    ) -> None:
        """`shards` are primary shards of each index of documents, `replicas` copies of each.

        None is one copy if there are several data nodes, else none.
        """
        pace = pace or Pace()
        self._client = open_client(urls, access, pace.requests + 2)
        self._prefix = prefix
        self._shards = shards
        self._replicas = replicas
        self._letters = DeadLetters(letters)
        self._loader = BulkLoader(self._client, self._letters, pace)
        self._options = typeahead
        self._merging = BackgroundMerging()
        self._folder = typeahead.folder
        self._temporary: TemporaryDirectory[str] | None = None
        self._typeaheads: dict[str, OpenSearchTypeahead] = {}

    @property
    def location(self) -> str:
        # The first request of every job: a wrong address should be reported soon.
        found = retry_transient(self._client.info, "the cluster does not answer", _FIRST_RETRY_S)
        check_cluster(self._client)
        return f"the indices {self._prefix} in cluster {found['cluster_uuid']}"

    def live(self) -> Stamp | None:
        return self._stamp(alias_name(self._prefix, STAMP))

    def generations(self) -> tuple[Generation, ...]:
        """The generations that have an index."""
        live, previous = (
            self._generation_behind(alias) for alias in (alias_name(self._prefix, STAMP), previous_alias(self._prefix))
        )
        names = self._names()
        generations = sorted({found for name in names if (found := self._generation_of(name)) is not None})
        return with_roles((self._generation(generation, names) for generation in generations), live, previous)

    def begin(self, generation: str) -> OpenSearchWriter:
        """Create the generation's indices, with their replicas."""
        typeahead = self._typeahead(generation)
        writer = OpenSearchWriter(self._client, self._prefix, generation, self._loader, typeahead)
        try:
            writer.create(self._shards, self._copies())
        except SinkError:
            self.drop(generation)
            raise
        return writer

    def reader(self, generation: str) -> OpenSearchReader:
        return OpenSearchReader(self._client, self._prefix, generation)

    def edit(self, generation: str) -> OpenSearchEditor:
        return OpenSearchEditor(
            self._client,
            self._prefix,
            generation,
            loader=self._loader,
            store=self._typeahead(generation),
            merging=self._merging,
        )

    def publish(self, generation: str, replaced: str | None) -> None:
        """Move all aliases in one step."""
        actions: list[dict[str, Any]] = []
        names = self._names()
        for kind in ALIASED:
            alias = alias_name(self._prefix, kind)
            # An index of the live generation may be lost, which a build repairs; the stamp's decides who is first.
            if replaced is not None and ((old := index_name(self._prefix, kind, replaced)) in names or kind == STAMP):
                actions.append({"remove": {"index": old, "alias": alias, "must_exist": True}})
            # `is_write_index` lets the later of two first publishers fail, which replace nothing.
            new = index_name(self._prefix, kind, generation)
            actions.append({"add": {"index": new, "alias": alias, "is_write_index": True}})
        actions += self._mark_previous(replaced)

        def move() -> None:
            # Checked at each attempt: an earlier one may have succeeded, and a later publisher need not retry.
            if (live := self._generation_behind(alias_name(self._prefix, STAMP))) not in {replaced, generation}:
                raise SinkError(f"the generation could not be published: {live or 'none'} is live by now")
            if live != generation:
                self._client.indices.update_aliases(body={"actions": actions})

        try:
            retry_transient(move, "the generation could not be published")
        except SinkError:
            # If the answer to a successful attempt was lost, the replaced aliases do not exist any more.
            live = self.live()
            if live is None or live.generation != generation:
                raise
        # A mark from an earlier time at which this generation was live.
        for document, what in ((RETIRED_ID, "the mark of its retirement"), (ANNOUNCED_ID, "an old announcement")):
            none_if_missing(
                partial(self._client.delete, index=index_name(self._prefix, STAMP, generation), id=document),
                f"generation {generation} is live, but {what} could not be removed",
            )

    def announce(self, generation: str) -> float:
        """Name the generation next to the live one's stamp."""
        stamp, live = self._stamp(index_name(self._prefix, STAMP, generation)), self.live()
        if stamp is None or live is None or live.generation == generation:
            return 0.0
        announced, failure = Announcement(generation, stamp.typeahead), "the next generation could not be announced"
        # Without a refresh: it is read by its id.
        self.reader(live.generation).put(ANNOUNCED_ID, announced.to_wire(), failure)
        files = self._typeahead(generation).manifest(stamp.typeahead).files()
        return self._options.seconds(sum(files.values()))

    def retire(self, generation: str, at: datetime) -> None:
        body = {"stamp": {"retired_at": at.isoformat()}}
        self.reader(generation).put(RETIRED_ID, body, f"generation {generation} could not be marked")

    def alias_drift(self) -> Mapping[str, str]:
        """Compare all aliases with the stamp's, and the stamp with its index."""
        indices = self._aliased()
        live = self._live(indices)
        if live is None:
            return {}
        drift: dict[str, str] = {}
        for kind, found in indices.items():
            expected = index_name(self._prefix, kind, live)
            if found != {expected}:
                leads = " and ".join(sorted(found)) or "nowhere"
                drift[kind] = (
                    f"the alias {alias_name(self._prefix, kind)} leads to {leads}, as another program has moved it:"
                    f" lead it to {expected} alone, with is_write_index, by POST /_aliases"
                )
        if STAMP not in drift and self._stamp_of(live).generation != live:
            drift[STAMP] = STAMP_DRIFT.format(live)
        return drift

    def repair_stamp(self) -> None:
        """Replace the document, with the counts of the indices and a typeahead built from them."""
        live = self._live(self._aliased())
        if live is None or (found := self._stamp_of(live)).generation == live:
            return
        reader = self.reader(live)
        typeahead = rebuilt(reader, self._typeahead(live))
        stamp = renewed(found, live, {kind: reader.count(kind) for kind in DOCUMENTS}, typeahead)
        failure = f"the stamp of {live} could not be repaired"
        reader.put(STAMP_ID, {"stamp": stamp.as_wire()}, failure, {"refresh": "true"})

    def drop(self, generation: str) -> None:
        """Delete the existing indices; the stamp's last, so that the generation is listed until then."""
        for kind in KINDS:
            index = index_name(self._prefix, kind, generation)
            retry_transient(
                partial(self._client.indices.delete, index=index, params={"ignore_unavailable": "true"}),
                f"generation {generation} could not be removed",
            )
        self._typeaheads.pop(generation, None)
        if self._folder is not None:
            shutil.rmtree(self._folder / generation, ignore_errors=True)

    def lease(self) -> OpenSearchLease:
        return OpenSearchLease(self._client, self._prefix)

    def close(self) -> None:
        self._letters.close()
        self._merging.close()
        if self._temporary is not None:
            self._temporary.cleanup()
        self._client.close()

    def _typeahead(self, generation: str) -> OpenSearchTypeahead:
        """The store of a generation's typeahead, with its own local folder."""
        if self._folder is None:
            self._temporary = TemporaryDirectory(prefix="shop-directory-typeahead-")
            self._folder = Path(self._temporary.name)
        if generation not in self._typeaheads:
            self._typeaheads[generation] = OpenSearchTypeahead(
                self._client, self._prefix, generation, self._folder / generation
            )
        return self._typeaheads[generation]

    def _copies(self) -> int:
        if self._replicas is not None:
            return self._replicas
        health = retry_transient(self._client.cluster.health, "the cluster's health could not be read")
        return 1 if health["number_of_data_nodes"] > 1 else 0

    def _mark_previous(self, replaced: str | None) -> list[dict[str, Any]]:
        alias, before = previous_alias(self._prefix), self._generation_behind(previous_alias(self._prefix))
        actions: list[dict[str, Any]] = []
        if before is not None and before != replaced:
            actions.append({"remove": {"index": index_name(self._prefix, STAMP, before), "alias": alias}})
        if replaced is not None:
            actions.append({"add": {"index": index_name(self._prefix, STAMP, replaced), "alias": alias}})
        return actions

    def _stamp(self, index: str) -> Stamp | None:
        failure = f"the stamp {index} cannot be read"
        try:
            found = none_if_missing(lambda: self._client.get(index=index, id=STAMP_ID), failure)
            return None if found is None else Stamp.from_wire(found["_source"]["stamp"])
        except (ValueError, KeyError) as error:
            raise SinkError(f"{failure}: {type(error).__name__}") from error

    def _stamp_of(self, generation: str) -> Stamp:
        stamp = self._stamp(index_name(self._prefix, STAMP, generation))
        if stamp is None:
            raise SinkError(f"the stamp of {generation} is missing: build again")
        return stamp

    def _aliased(self) -> Mapping[str, frozenset[str]]:
        pattern, every = f"{self._prefix}-*", {"expand_wildcards": "all"}
        found = none_if_missing(
            lambda: self._client.indices.get_alias(name=pattern, params=dict(every)), "the aliases cannot be read"
        )
        listed = (found or {}).items()
        return {
            kind: frozenset(name for name, about in listed if alias_name(self._prefix, kind) in about["aliases"])
            for kind in ALIASED
        }

    def _live(self, indices: Mapping[str, frozenset[str]]) -> str | None:
        """The generation of the stamp's alias; if that leads nowhere or to several, the one of all other aliases."""
        if not any(indices.values()):
            return None
        # An index that is not a generation can't be live.
        found = {kind: frozenset(map(self._generation_of, names)) - {None} for kind, names in indices.items()}
        candidates = found[STAMP]
        if len(candidates) != 1:
            candidates = frozenset.intersection(*(found[kind] & (candidates or found[kind]) for kind in DOCUMENTS))
        live = next(iter(candidates), None)
        if len(candidates) != 1 or live is None:
            raise SinkError("the aliases do not say which generation is live: publish one by a full build")
        return live

    def _generation_behind(self, alias: str) -> str | None:
        """The generation that an alias of a stamp's index leads to."""
        failure = f"the alias {alias} cannot be read"
        found = none_if_missing(lambda: self._client.indices.get_alias(name=alias), failure)
        if found is not None and len(found) != 1:
            raise SinkError(f"{failure}: it leads to {len(found)} indices")
        return None if found is None else self._generation_of(next(iter(found)))

    def _names(self) -> frozenset[str]:
        return frozenset(
            retry_transient(
                lambda: self._client.indices.get(index=f"{self._prefix}-*", params={"expand_wildcards": "all"}),
                "the generations could not be listed",
            )
        )

    def _generation_of(self, name: str) -> str | None:
        for kind in KINDS:
            generation = name.removeprefix(f"{self._prefix}-{kind}-")
            if generation != name and is_generation(generation):
                return generation
        return None

    def _generation(self, name: str, names: frozenset[str]) -> Generation:
        index = index_name(self._prefix, STAMP, name)
        found = none_if_missing(
            lambda: self._client.get(index=index, id=RETIRED_ID), f"generation {name} cannot be read"
        )
        try:
            retired_at = None if found is None else datetime.fromisoformat(found["_source"]["stamp"]["retired_at"])
        except (ValueError, KeyError):
            retired_at = None
        stamp = self._stamp(index)
        whole = stamp is not None and all(index_name(self._prefix, kind, name) in names for kind in KINDS)
        return Generation(name, GenerationRole.UNFINISHED, stamp, retired_at, whole)
