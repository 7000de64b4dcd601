"""Reads an OpenSearch generation; an incomplete answer is an error, as in the service (E3)."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException

from index_mappings.generations import OPERATIONS_ID, STAMP, Operations, index_name
from indexer.sinks.opensearch.retries import IncompleteError, none_if_missing, retry_transient, whole

_PAGE: Final = 1_000
_KEEP_ALIVE: Final = "5m"
_WHOLE: Final = {"allow_partial_search_results": "false"}


class OpenSearchReader:
    """Reads the indices of one generation."""

    def __init__(self, client: OpenSearch, prefix: str, generation: str) -> None:
        self._client = client
        self._prefix = prefix
        self._generation = generation

    def count(self, kind: str) -> int:
        """The number of documents that a search finds."""
        return self._count(kind, {"match_all": {}})

    def count_ids(self, kind: str, ids: Collection[str]) -> int:
        """The number of these ids that a search finds."""
        return self._count(kind, {"terms": {"id": list(ids)}})

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        """Stored parts by id."""
        if not ids:
            return {}  # the engine refuses an empty request

        def ask() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = self._client.mget(body={"ids": list(ids)}, index=self._index(kind))["docs"]
            if any("error" in document for document in found):
                raise IncompleteError
            return found

        found = retry_transient(ask, f"the {kind} could not be read back")
        return {document["_id"]: document["_source"] for document in found if document["found"]}

    def scan(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Ids and stored parts in the order of the ids.

        They are of one point in time, unless that is lost with a node: then the scan continues after the last id as of
        a later one.
        """
        scanning = _Scan(self._client, self._index(kind))
        try:
            while hits := retry_transient(scanning.page, f"the {kind} could not be scanned"):
                yield from ((hit["_id"], hit["_source"]) for hit in hits)
        finally:
            scanning.close()

    def page(self, kind: str, after: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        """The first ids after one."""
        body = {"query": {"match_all": {}}, "size": limit, "sort": [{"id": "asc"}], "search_after": [after]}
        answer = retry_transient(
            lambda: whole(self._client.search(index=self._index(kind), body=body, params=_WHOLE)),
            f"a page of the {kind} could not be read",
        )
        return [(hit["_id"], hit["_source"]) for hit in answer["hits"]["hits"]]

    def operations(self) -> Operations | None:
        """The document next to the stamp."""
        index, failure = self._index(STAMP), "the operations document could not be read"
        found = none_if_missing(lambda: self._client.get(index=index, id=OPERATIONS_ID), failure)
        try:
            return None if found is None else Operations.from_wire(found["_source"]["stamp"]["operations"])
        except (KeyError, TypeError, ValueError):
            return None

    def _count(self, kind: str, query: dict[str, Any]) -> int:
        body = {"query": query, "size": 0, "track_total_hits": True}
        answer = retry_transient(
            lambda: whole(self._client.search(index=self._index(kind), body=body, params=_WHOLE)),
            f"the {kind} could not be counted",
        )
        return int(answer["hits"]["total"]["value"])

    def _index(self, kind: str) -> str:
        return index_name(self._prefix, kind, self._generation)


class _Scan:
    """A scan of an index, page by page."""

    def __init__(self, client: OpenSearch, index: str) -> None:
        self._client = client
        self._index = index
        self._point: str | None = None
        self._after: list[Any] | None = None

    def page(self) -> list[dict[str, Any]]:
        """The next hits; none at the end."""
        if self._point is None:
            self._point = self._client.create_pit(index=self._index, params={"keep_alive": _KEEP_ALIVE})["pit_id"]
        body = {"size": _PAGE, "sort": [{"id": "asc"}], "track_total_hits": False}
        body |= {"query": {"match_all": {}}, "pit": {"id": self._point, "keep_alive": _KEEP_ALIVE}}
        if self._after is not None:
            body["search_after"] = self._after
        try:
            hits: list[dict[str, Any]] = whole(self._client.search(body=body, params=_WHOLE))["hits"]["hits"]
        except OpenSearchException as error:
            self._point = None  # it may be lost with a node, which the status does not always show
            raise (IncompleteError if isinstance(error, NotFoundError) else error) from error
        self._after = hits[-1]["sort"] if hits else self._after
        return hits

    def close(self) -> None:
        """Release the point in time."""
        if self._point is not None:
            # It expires by itself, so a failure is harmless.
            with suppress(OpenSearchException):
                self._client.delete_pit(body={"pit_id": [self._point]})
