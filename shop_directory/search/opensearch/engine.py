"""The OpenSearch engine: one round trip per search, whose body is compiled from a plan; golden files have such bodies.

A hit's score is its tier, by constant scores under a dis_max (M2). Results must be complete (E3): time-outs, failed
shards and inexact totals have status 200, and are errors. The cluster cancels a search after a time, as it may not
notice a closed connection.
"""

from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import orjson
from opensearchpy.exceptions import ConnectionTimeout, OpenSearchException, TransportError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from index_mappings.documents import sort_field
from index_mappings.generations import (
    OPERATIONS_ID,
    STAMP,
    STAMP_ID,
    Operations,
    Stamp,
    alias_name,
    index_name,
    previous_alias,
)
from index_mappings.ngrams import PREFIXES, SHORT, SUFFIXES
from index_mappings.opensearch import PREFIX_MAX
from index_mappings.tiers import INFIX_MIN
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import remaining_seconds
from shop_directory.search.engine import Facet, GuardedEngine, Hit, Page, SearchRequest
from shop_directory.search.failures import BackendUnavailable, GenerationDamaged, GenerationGone, NothingPublished
from shop_directory.search.opensearch.folder import DEFAULT_FOLDER, FolderLocation
from shop_directory.search.opensearch.nodes import connect
from shop_directory.search.opensearch.typeahead import TypeaheadFetcher
from shop_directory.search.plan import (
    LEADING,
    AllOf,
    AnyOf,
    Below,
    Clause,
    Exact,
    Infix,
    NoneOf,
    Plan,
    Prefix,
    exclusive,
)
from shop_directory.search.planned_backend import PlannedBackend
from shop_directory.search.protocol import FacetCounts, Generations, Position
from shop_directory.settings.locations import OPEN_ACCESS, ClusterAccess
from shop_directory.typeahead.manifest import ANNOUNCED_ID, Announcement

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.typeahead import Typeahead

_SCAN_BATCH: Final = 5_000
# The shares of the timeout of the attempts to read the stamp: the last one is for nodes that are slow, but answer.
_STAMP_ATTEMPTS: Final = (0.2, 0.2, 0.6)
_NO_INDEX: Final = "index_not_found_exception"
# More than the distinct values of a counted field, so that all of them are returned and none is estimated.
_MAX_VALUES: Final = 50_000
# Ranks begin with a hexadecimal digit.
_BEFORE_ALL_RANKS: Final = ""
_AFTER_ALL_RANKS: Final = "~"


class OpenSearchBackend(PlannedBackend):
    """Search in the indices of an OpenSearch cluster."""

    def __init__(
        self,
        urls: Sequence[str],
        prefix: str,
        category_cap: int = 50,
        timeout: float = 1.5,
        metrics: Metrics = NO_METRICS,
        *,
        access: ClusterAccess = OPEN_ACCESS,
        location: FolderLocation = DEFAULT_FOLDER,
    ) -> None:
        """Connect lazily; `timeout` is the seconds that one request may take, `prefix` that of all index names."""
        engine = OpenSearchEngine(urls, prefix, timeout, access, location=location, metrics=metrics)
        super().__init__(GuardedEngine(engine, "opensearch", metrics), category_cap, metrics)


class OpenSearchEngine:
    """Runs plans on a cluster."""

    # The fraction of the request timeout that a shard may take, so that it ends before the client.
    shard_time_share = 0.9

    def __init__(
        self,
        urls: Sequence[str],
        prefix: str,
        timeout: float,
        access: ClusterAccess = OPEN_ACCESS,
        *,
        location: FolderLocation = DEFAULT_FOLDER,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._prefix = prefix
        self._timeout = timeout
        self._client = connect(urls, timeout, access)
        self._typeaheads = TypeaheadFetcher(self._client, prefix, location.folder(prefix), location.most_bytes, metrics)

    async def live(self) -> Stamp:
        """The live stamp; the typeahead that is announced with it is fetched ahead."""
        live = alias_name(self._prefix, STAMP)
        found, announced = await self._documents((live, STAMP_ID), (live, ANNOUNCED_ID))
        stamp = self._live_stamp(found)
        if (announcement := Announcement.from_wire(announced.get("_source", {}))) is not None:
            self._typeaheads.fetch_ahead(announcement)
        return stamp

    async def generations(self) -> Generations:
        """Both stamps and the operations document, read by one request."""
        live = alias_name(self._prefix, STAMP)
        found, previous, operations = await self._documents(
            (live, STAMP_ID), (previous_alias(self._prefix), STAMP_ID), (live, OPERATIONS_ID)
        )
        return Generations(self._live_stamp(found), _stamp(previous), _operations(operations))

    async def _documents(self, *wanted: tuple[str, str]) -> list[dict[str, Any]]:
        """Some small documents, by the names of their indices and their ids."""
        # They are read fast unless their shard copy is on a hanging node. So the timeout is split into attempts, as the
        # next one may read another copy.
        shares = iter(_STAMP_ATTEMPTS)
        body = {"docs": [{"_index": index, "_id": document_id} for index, document_id in wanted]}

        async def read() -> dict[str, Any]:
            params = {"request_timeout": self._timeout * next(shares)}
            transport = self._client.transport
            found: dict[str, Any] = await transport.perform_request("GET", "/_mget", params=params, body=body)
            return found

        on_timeout = retry_if_exception_type(ConnectionTimeout)
        attempts = stop_after_attempt(len(_STAMP_ATTEMPTS))
        try:
            response: dict[str, Any] = await AsyncRetrying(retry=on_timeout, stop=attempts, reraise=True)(read)
        except OpenSearchException as error:
            raise BackendUnavailable("the stamp could not be read") from error
        documents: list[dict[str, Any]] = response["docs"]
        return documents

    def _live_stamp(self, found: Mapping[str, Any]) -> Stamp:
        stamp = _stamp(found)
        if stamp is None:
            raise NothingPublished(
                f"nothing is published under the alias {alias_name(self._prefix, STAMP)} of the cluster of "
                "SHOP_DIRECTORY_OPENSEARCH_URLS; SHOP_DIRECTORY_INDEX_PREFIX is the prefix of the alias"
            )
        return stamp

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Fetch the files of the stamp's typeahead, and open it."""
        return await self._typeaheads.open(stamp)

    async def search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        """Run searches in one request."""
        seconds = self._time_left()
        timeout_ms = _milliseconds(self.shard_time_share * seconds)
        indices = [index_name(self._prefix, request.plan.kind, stamp.generation) for request in requests]
        bodies = [search_body(request, timeout_ms=timeout_ms) for request in requests]
        if len(requests) == 1:
            target, body = search_target(indices[0], _milliseconds(seconds)), orjson.dumps(bodies[0])
            responses = [await self._checked(stamp, indices[0], self._get(target, body, seconds))]
        else:
            body = searches_body(zip(indices, bodies, strict=True), _milliseconds(seconds))
            responses = (await self._checked(stamp, indices[0], self._get("/_msearch", body, seconds)))["responses"]
        return tuple(
            [
                _page(request, await self._complete(stamp, index, response))
                for request, index, response in zip(requests, indices, responses, strict=True)
            ]
        )

    async def scan(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits in batches, as of one point in time."""
        index = index_name(self._prefix, plan.kind, stamp.generation)
        params: dict[str, Any] = {
            "keep_alive": "1m",
            "request_timeout": self._time_left(),
            # The default opens it without unavailable shards, and later responses look complete.
            "allow_partial_pit_creation": "false",
        }
        opened = await self._checked(stamp, index, self._client.create_pit(index=index, params=params))
        point_in_time = opened["pit_id"]
        after: list[Any] | None = None
        try:
            while True:
                body = orjson.dumps(scan_body(plan, point_in_time, after, limit=_SCAN_BATCH))
                seconds = self._time_left()
                request = self._get(search_target("", _milliseconds(seconds)), body, seconds)
                response = await self._complete(stamp, index, await self._checked(stamp, index, request))
                hits = response["hits"]["hits"]
                if hits:
                    yield tuple(Hit(level_of(plan, None), hit["_source"]) for hit in hits)
                if len(hits) < _SCAN_BATCH:
                    return
                after = hits[-1]["sort"]
        finally:
            # If this fails, it expires after a minute.
            with suppress(OpenSearchException):
                await self._client.delete_pit(body={"pit_id": [point_in_time]})

    async def close(self) -> None:
        """Close the connections."""
        await self._typeaheads.close()
        await self._client.close()

    async def _get(self, target: str, body: bytes, seconds: float) -> dict[str, Any]:
        # The client's search methods are slow. Over a stale connection, aiohttp repeats a GET, and no POST.
        transport = self._client.transport
        response: dict[str, Any] = await transport.perform_request("GET", target, body=body, timeout=seconds)
        return response

    def _time_left(self) -> float:
        seconds = remaining_seconds(self._timeout)
        if seconds <= 0:
            raise BackendUnavailable("no time was left for a request to the engine")
        return seconds

    async def _checked(self, stamp: Stamp, index: str, response: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The response, which may be incomplete; errors of the client become BackendUnavailable."""
        try:
            return await response
        except OpenSearchException as error:
            status = error.status_code if isinstance(error, TransportError) else None
            raise await self._failure(stamp, index, status) from error

    async def _complete(self, stamp: Stamp, index: str, response: dict[str, Any]) -> dict[str, Any]:
        """The response of a search; BackendUnavailable if it is an error or incomplete."""
        if "error" in response:
            raise await self._failure(stamp, index, response.get("status")) from ValueError(str(response["error"]))
        if response["timed_out"] or response["_shards"]["failed"] or response.get("terminated_early"):
            raise BackendUnavailable(f"the response of a search in {index} is incomplete")
        return response

    async def _failure(self, stamp: Stamp, index: str, status: object) -> BackendUnavailable:
        if status == HTTPStatus.NOT_FOUND:
            return GenerationGone(f"{index} is no longer there")
        # While an index is being deleted its shards go first, and the status is that of unavailable shards.
        if status == HTTPStatus.SERVICE_UNAVAILABLE and (await self.live()).generation != stamp.generation:
            return GenerationGone(f"{index} is being deleted")
        return BackendUnavailable(f"a search in {index} failed")


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _page(request: SearchRequest, response: dict[str, Any]) -> Page:
    hits = tuple(Hit(level_of(request.plan, hit["_score"]), hit["_source"]) for hit in response["hits"]["hits"])
    counts: tuple[int, ...] = ()
    if request.buckets:
        buckets = response["aggregations"]["buckets"]["buckets"]
        counts = tuple(buckets[str(index)]["doc_count"] for index in range(len(request.buckets)))
    facets = tuple([_facet_counts(response["aggregations"][facet.field]) for facet in request.facets])
    if not request.total:
        return Page(hits, None, counts, facets)
    total = response["hits"]["total"]
    if total["relation"] != "eq":
        raise BackendUnavailable("the number of hits is not exact")
    return Page(hits, total["value"], counts, facets)


def _facet_counts(aggregation: Mapping[str, Any]) -> FacetCounts:
    values = aggregation["values"]
    # With all values of every shard the sums are exact.
    if values["sum_other_doc_count"] or values["doc_count_error_upper_bound"]:
        raise BackendUnavailable("the numbers of hits by value are not exact")
    counts = {bucket["key"]: bucket["doc_count"] for bucket in values["buckets"]}
    return FacetCounts(counts, aggregation["missing"]["doc_count"])


def _stamp(found: Mapping[str, Any]) -> Stamp | None:
    if "error" in found and found["error"]["type"] != _NO_INDEX:
        raise BackendUnavailable("a stamp could not be read")
    if not found.get("found"):
        return None
    try:
        return Stamp.from_wire(found["_source"]["stamp"])
    except (KeyError, TypeError, ValueError) as error:
        raise GenerationDamaged("the stamp's document of a generation is damaged") from error


def _operations(found: Mapping[str, Any]) -> Operations | None:
    try:
        return Operations.from_wire(found["_source"]["stamp"]["operations"])
    except (KeyError, TypeError, ValueError):
        return None


def search_body(request: SearchRequest, *, timeout_ms: int) -> dict[str, Any]:
    """The body of a search whose shards fail after `timeout_ms`; the index stores no fields but the returned ones."""
    plan = request.plan
    if request.facets:
        shared = [clause for clause in plan.filters if all(clause in facet.filters for facet in request.facets)]
        plan = replace(plan, filters=tuple(shared))
    rank = {sort_field(plan.kind): "asc"}
    unscored = _is_unscored(plan)
    body: dict[str, Any] = {
        "query": whole_query(plan),
        # One tier needs no score; without scores the sorted index ends the search early.
        "sort": [rank] if unscored else [{"_score": "desc"}, rank],
        "from": request.offset,
        "size": request.limit,
        "track_total_hits": request.total,
        "timeout": f"{timeout_ms}ms",
    }
    if request.buckets:
        filters = {str(index): clause_body(clause) for index, clause in enumerate(exclusive(request.buckets))}
        # A post filter applies to the hits only, so that one search also counts the documents in the buckets.
        body["post_filter"] = clause_body(NoneOf(request.buckets))
        body["aggs"] = {"buckets": {"filters": {"filters": filters}}}
    if request.facets:
        body["post_filter"] = clause_body(AllOf(_others(request.plan.filters, plan.filters)))
        body["aggs"] = {facet.field: _facet_body(facet, plan.filters) for facet in request.facets}
    if request.after is not None:
        body["search_after"] = _search_after(plan, request.after)
    return body


def _facet_body(facet: Facet, shared: Sequence[Clause]) -> dict[str, Any]:
    return {
        "filter": clause_body(AllOf(_others(facet.filters, shared))),
        "aggs": {
            "values": {"terms": {"field": facet.field, "size": _MAX_VALUES}},
            "missing": {"missing": {"field": facet.field}},
        },
    }


def _others(clauses: Sequence[Clause], shared: Sequence[Clause]) -> tuple[Clause, ...]:
    return tuple([clause for clause in clauses if clause not in shared])


def _search_after(plan: Plan, after: Position) -> list[Any]:
    """The sort values of a position, whose level the plan may lack."""
    if not _is_unscored(plan):
        return [after.level / 2 + _lowest_score(plan), after.rank]
    level = level_of(plan, None)
    if level == after.level:
        return [after.rank]
    return [_BEFORE_ALL_RANKS if level < after.level else _AFTER_ALL_RANKS]


def scan_body(plan: Plan, point_in_time: str, after: list[Any] | None, *, limit: int) -> dict[str, Any]:
    """The body of one batch of a scan of a plan with one tier, as of a point in time."""
    body: dict[str, Any] = {
        "query": whole_query(plan),
        "sort": [{sort_field(plan.kind): "asc"}],
        "size": limit,
        "track_total_hits": False,
        "pit": {"id": point_in_time, "keep_alive": "1m"},
    }
    return body if after is None else {**body, "search_after": after}


def level_of(plan: Plan, score: float | None) -> int:
    """The level of a hit by its score; plans of one tier are scored only if some hits come first."""
    return int(2 * ((score or 0.0) - _lowest_score(plan)))


def _lowest_score(plan: Plan) -> float:
    """The score of the hits of the tier 0, whether the plan has it or not: a single tier adds nothing to the score."""
    return -plan.tiers[0][0] if len(plan.tiers) == 1 else 1


def _is_unscored(plan: Plan) -> bool:
    return len(plan.tiers) == 1 and plan.preferred is None and plan.leading is None


def clause_body(clause: Clause) -> dict[str, Any]:
    """The query of a clause."""
    match clause:
        case NoneOf(clauses):
            return {"bool": {"must_not": [clause_body(part) for part in clauses]}}
        case AllOf(()):
            return {"match_all": {}}
        case AnyOf(()):
            return {"match_none": {}}
        case AllOf((only,)) | AnyOf((only,)):
            return clause_body(only)
        case AllOf(clauses):
            return {"bool": {"filter": [clause_body(part) for part in clauses]}}
        case AnyOf(clauses):
            return {"bool": {"should": [clause_body(part) for part in clauses], "minimum_should_match": 1}}
        case _:
            return _field_query(clause)


def _field_query(clause: Exact | Prefix | Infix | Below) -> dict[str, Any]:
    match clause:
        case Exact(field, (text,)):
            return {"term": {field: text}}
        case Exact(field, texts):
            return {"terms": {field: list(texts)}}
        case Prefix(field, text):
            return {"prefix": {field: text}} if len(text) > PREFIX_MAX else {"term": {field + PREFIXES: text}}
        case Infix(field, text) if len(text) < INFIX_MIN:
            return {"term": {field + SHORT: text}}
        case Infix(field, text):
            return {"prefix": {field + SUFFIXES: text}}
        case Below(field, bound):
            return {"range": {field: {"lt": bound}}}


def whole_query(plan: Plan) -> dict[str, Any]:
    """The query of a plan, with filters and exclusions."""
    query: dict[str, Any] = {"filter": [clause_body(clause) for clause in plan.filters]}
    if plan.excluded:
        query["must_not"] = [clause_body(clause) for clause in plan.excluded]
    if len(plan.tiers) == 1:
        query["filter"].append(clause_body(plan.tiers[0][1]))
    else:
        # Boosts start at one: with a score of zero, a hit of the lowest tier would look like no match.
        tiers = [{"constant_score": {"filter": clause_body(c), "boost": tier + 1}} for tier, c in plan.tiers]
        query["must"] = [{"dis_max": {"queries": tiers}}]
    # Preferred hits gain less than the distance of two tiers.
    boosts = [(clause, boost) for clause, boost in ((plan.preferred, 0.5), (plan.leading, LEADING)) if clause]
    if boosts:
        query["should"] = [{"constant_score": {"filter": clause_body(c), "boost": boost}} for c, boost in boosts]
    return {"bool": query}


def search_target(index: str, milliseconds: int) -> str:
    """The target of a search that the cluster cancels after `milliseconds`; `index` is empty for a point in time."""
    path = f"/{quote(index)}" if index else ""
    return f"{path}/_search?allow_partial_search_results=false&cancel_after_time_interval={milliseconds}ms"


def searches_body(searches: Iterable[tuple[str, dict[str, Any]]], milliseconds: int) -> bytes:
    """The body of a multi-search of pairs of index and body, each with the limits of `search_target`."""
    lines: list[bytes] = []
    for index, body in searches:
        header = {
            "index": index,
            "allow_partial_search_results": False,
            "cancel_after_time_interval": f"{milliseconds}ms",
        }
        lines += [orjson.dumps(header), orjson.dumps(body)]
    return b"\n".join([*lines, b""])
