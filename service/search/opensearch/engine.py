"""The OpenSearch engine: one round trip per search.

A timed-out search, a failed shard and an inexact total have status 200, and are errors nevertheless (E3).
"""

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import orjson
from opensearchpy.exceptions import ConnectionTimeout, OpenSearchException, TransportError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

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
from index_mappings.typeahead.manifest import ANNOUNCED_ID, Announcement
from service.runtime.request_context import remaining_seconds
from service.runtime.telemetry import NO_METRICS, Metrics
from service.search.engine import Hit, Page, SearchRequest
from service.search.failures import BackendUnavailable, GenerationGone, NothingPublished
from service.search.guarded_engine import GuardedEngine
from service.search.opensearch.folder import DEFAULT_FOLDER, FolderLocation
from service.search.opensearch.nodes import connect
from service.search.opensearch.queries import scan_body, search_body, search_target, searches_body, tier_of
from service.search.opensearch.typeahead import FetchedTypeaheads, TypeaheadFetcher
from service.search.plan import Plan
from service.search.planned_backend import PlannedBackend
from service.search.protocol import Generations
from shop_directory.settings.locations import OPEN_ACCESS, ClusterAccess

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

_SCAN_BATCH: Final = 5_000
# The shares of the timeout of the attempts to read the stamp: the last one is for nodes that are slow, but answer.
_STAMP_ATTEMPTS: Final = (0.2, 0.2, 0.6)
_NO_INDEX: Final = "index_not_found_exception"


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
    """Runs plans on a cluster.

    Attributes:
        shard_time_share: the fraction of the request timeout that a shard may take, so that it ends before the client.
    """

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
        self._fetcher = TypeaheadFetcher(self._client, prefix, location.folder(prefix), location.most_bytes, metrics)
        self._typeaheads = FetchedTypeaheads(self._fetcher, metrics)

    async def live(self) -> Stamp:
        """The live stamp; the typeahead that is announced with it is fetched ahead."""
        try:
            stamp, announced = parse_live(await self._documents(live_body(self._prefix)), self._prefix)
        except OpenSearchException as error:
            raise BackendUnavailable("the stamp could not be read") from error
        if announced is not None:
            self._fetcher.fetch_ahead(announced)
        return stamp

    async def _documents(self, body: dict[str, Any]) -> dict[str, Any]:
        """Some small documents by their ids.

        They are read fast unless their shard copy is on a hanging node. So the timeout is split into several attempts,
        as the next one may read another copy.
        """
        shares = iter(_STAMP_ATTEMPTS)

        async def read() -> dict[str, Any]:
            params = {"request_timeout": self._timeout * next(shares)}
            transport = self._client.transport
            response: dict[str, Any] = await transport.perform_request("GET", "/_mget", params=params, body=body)
            return response

        on_timeout = retry_if_exception_type(ConnectionTimeout)
        attempts = stop_after_attempt(len(_STAMP_ATTEMPTS))
        return await AsyncRetrying(retry=on_timeout, stop=attempts, reraise=True)(read)

    async def generations(self) -> Generations:
        """Both stamps and the operations document, read by one request."""
        try:
            return parse_generations(await self._documents(generations_body(self._prefix)), self._prefix)
        except OpenSearchException as error:
            raise BackendUnavailable("the generations could not be read") from error

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
                    yield tuple(Hit(plan.tiers[0][0], hit["_source"]) for hit in hits)
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
        # The client's search methods take longer than all other parts of a request. Over a stale connection, aiohttp
        # repeats a GET, and no POST.
        transport = self._client.transport
        response: dict[str, Any] = await transport.perform_request("GET", target, body=body, timeout=seconds)
        return response

    def _time_left(self) -> float:
        """Seconds that a request may take from now on."""
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
        """The error for the status of a failed search."""
        if status == HTTPStatus.NOT_FOUND:
            return GenerationGone(f"{index} is no longer there")
        # While an index is being deleted its shards go first, and the status is that of unavailable shards.
        if status == HTTPStatus.SERVICE_UNAVAILABLE and (await self.live()).generation != stamp.generation:
            return GenerationGone(f"{index} is being deleted")
        return BackendUnavailable(f"a search in {index} failed")


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _page(request: SearchRequest, response: dict[str, Any]) -> Page:
    hits = tuple(Hit(tier_of(request.plan, hit["_score"]), hit["_source"]) for hit in response["hits"]["hits"])
    counts: tuple[int, ...] = ()
    if request.buckets:
        buckets = response["aggregations"]["buckets"]["buckets"]
        counts = tuple(buckets[str(index)]["doc_count"] for index in range(len(request.buckets)))
    if not request.total:
        return Page(hits, None, counts)
    total = response["hits"]["total"]
    if total["relation"] != "eq":
        raise BackendUnavailable("the number of hits is not exact")
    return Page(hits, total["value"], counts)


def live_body(prefix: str) -> dict[str, Any]:
    """The body of a request for the live stamp and the announcement."""
    live = alias_name(prefix, STAMP)
    return {"docs": [{"_index": live, "_id": STAMP_ID}, {"_index": live, "_id": ANNOUNCED_ID}]}


def parse_live(response: Mapping[str, Any], prefix: str) -> tuple[Stamp, Announcement | None]:
    """The live stamp and the announcement in the response to `live_body`. Raises as `Engine.live`."""
    live, announced = response["docs"]
    stamp = _stamp(live)
    if stamp is None:
        raise _nothing_published(prefix)
    return stamp, Announcement.from_wire(announced.get("_source", {}))


def generations_body(prefix: str) -> dict[str, Any]:
    """The body of a request for both stamps and the operations document."""
    live = alias_name(prefix, STAMP)
    return {
        "docs": [
            {"_index": live, "_id": STAMP_ID},
            {"_index": previous_alias(prefix), "_id": STAMP_ID},
            {"_index": live, "_id": OPERATIONS_ID},
        ]
    }


def parse_generations(response: Mapping[str, Any], prefix: str) -> Generations:
    """The generations in the response to `generations_body`. Raises as `Engine.live`."""
    live, previous, operations = response["docs"]
    stamp = _stamp(live)
    if stamp is None:
        raise _nothing_published(prefix)
    return Generations(live=stamp, previous=_stamp(previous), operations=_operations(operations))


def _nothing_published(prefix: str) -> NothingPublished:
    return NothingPublished(
        f"nothing is published under the alias {alias_name(prefix, STAMP)} of the cluster of "
        "SHOP_DIRECTORY_OPENSEARCH_URLS; SHOP_DIRECTORY_INDEX_PREFIX is the prefix of the alias"
    )


def _stamp(found: Mapping[str, Any]) -> Stamp | None:
    if "error" in found and found["error"]["type"] != _NO_INDEX:
        raise BackendUnavailable("a stamp could not be read")
    if not found.get("found"):
        return None
    try:
        return Stamp.from_wire(found["_source"]["stamp"])
    except (KeyError, TypeError, ValueError) as error:
        raise BackendUnavailable("a stamp's document is damaged") from error


def _operations(found: Mapping[str, Any]) -> Operations | None:
    try:
        return Operations.from_wire(found["_source"]["stamp"]["operations"])
    except (KeyError, TypeError, ValueError):
        return None
