"""The OpenSearch engine: one round trip a search, and only a whole answer counts.

A timed-out search, a failed shard or an inexact total comes with status 200 and is an error all the same (E3).
"""

from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import orjson
from opensearchpy.exceptions import ConnectionTimeout, OpenSearchException, TransportError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from index_mappings.generations import Stamp, index_name
from service.runtime.metrics import NOTHING_MEASURED, Metrics
from service.runtime.request_context import time_left
from service.search.engine import Ask, Hit, Page
from service.search.failures import BackendUnavailable, GenerationGone
from service.search.guarded_engine import GuardedEngine
from service.search.opensearch.generations import generations_body, generations_of, live_body, live_of
from service.search.opensearch.nodes import connect
from service.search.opensearch.queries import every_body, search_body, tier_of
from service.search.opensearch.requests import search_target, searches_body
from service.search.opensearch.typeahead import FetchedTypeaheads
from service.search.plan import Plan
from service.search.planned_backend import PlannedBackend
from service.search.protocol import Generations
from service.search.typeahead.fetching import TypeaheadFetcher
from service.search.typeahead.folder import DEFAULT_PLACE, FolderLocation
from shop_directory.settings.cluster_access import OPEN_ACCESS, ClusterAccess

if TYPE_CHECKING:
    from service.search.typeahead.typeahead import Typeahead

_EVERY_PAGE: Final = 5_000
_STAMP_TRIES: Final = 3


class OpenSearchBackend(PlannedBackend):
    """Search in the indices of an OpenSearch cluster."""

    def __init__(
        self,
        urls: Sequence[str],
        prefix: str,
        category_cap: int = 50,
        timeout: float = 1.5,
        metrics: Metrics = NOTHING_MEASURED,
        *,
        access: ClusterAccess = OPEN_ACCESS,
        place: FolderLocation = DEFAULT_PLACE,
    ) -> None:
        """Connect lazily.

        Args:
            urls: the cluster's nodes.
            prefix: what all index names begin with.
            category_cap: how many categories a word may mean (M5).
            timeout: seconds that one request may take.
            metrics: are told of every request.
            access: how the cluster lets us in.
            place: where files of typeaheads are, and how large they may be.
        """
        engine = OpenSearchEngine(urls, prefix, timeout, access, place=place, metrics=metrics)
        super().__init__(GuardedEngine(engine, "opensearch", metrics), category_cap, metrics)


class OpenSearchEngine:
    """Runs plans on a cluster.

    Attributes:
        shards_share: of a request's time, what a shard may take: it says that it ran out of it before nobody listens.
    """

    shards_share = 0.9

    def __init__(
        self,
        urls: Sequence[str],
        prefix: str,
        timeout: float,
        access: ClusterAccess = OPEN_ACCESS,
        *,
        place: FolderLocation = DEFAULT_PLACE,
        metrics: Metrics = NOTHING_MEASURED,
    ) -> None:
        self._prefix = prefix
        self._timeout = timeout
        self._stamp_timeout = timeout / _STAMP_TRIES
        self._client = connect(urls, timeout, access)
        self._fetcher = TypeaheadFetcher(self._client, prefix, place.folder(prefix), place.most_bytes, metrics)
        self._typeaheads = FetchedTypeaheads(self._fetcher, metrics)

    async def live(self) -> Stamp:
        """The stamp document behind the alias; what is announced next to it is fetched ahead."""
        try:
            stamp, announced = live_of(await self._documents(live_body(self._prefix)), self._prefix)
        except OpenSearchException as error:
            raise BackendUnavailable("the stamp could not be read") from error
        if announced is not None:
            self._fetcher.fetch_ahead(announced)
        return stamp

    async def _documents(self, body: dict[str, Any]) -> dict[str, Any]:
        """Some small documents by their ids.

        A copy on a node that hangs would hold up everybody, and small documents are had at once or not at all: the time
        for them is that of several tries, of which another may meet another copy.
        """

        async def ask() -> dict[str, Any]:
            params = {"request_timeout": self._stamp_timeout}
            found: dict[str, Any] = await self._client.mget(body=body, params=params)
            return found

        again = retry_if_exception_type(ConnectionTimeout)
        return await AsyncRetrying(retry=again, stop=stop_after_attempt(_STAMP_TRIES), reraise=True)(ask)

    async def generations(self) -> Generations:
        """Both stamps and the operations document, in one request and so as of one moment."""
        try:
            return generations_of(await self._documents(generations_body(self._prefix)), self._prefix)
        except OpenSearchException as error:
            raise BackendUnavailable("the generations could not be read") from error

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's typeahead, once its files are in the folder."""
        return await self._typeaheads.open(stamp)

    async def search(self, stamp: Stamp, asks: Sequence[Ask]) -> tuple[Page, ...]:
        """Run searches in one request."""
        seconds = self._time_left()
        bodies = [(ask.plan.kind, search_body(ask, timeout_ms=self._of_shards(seconds))) for ask in asks]
        answers = await self._ask(stamp, bodies, seconds)
        return tuple(_page(ask, answer) for ask, answer in zip(asks, answers, strict=True))

    async def every(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits in pages, as of one point in time."""
        index = index_name(self._prefix, plan.kind, stamp.generation)
        params: dict[str, Any] = {
            "keep_alive": "1m",
            "request_timeout": self._time_left(),
            # Otherwise it is opened without the shards that are away, and all that follows looks whole.
            "allow_partial_pit_creation": "false",
        }
        opened = await self._answered(stamp, index, self._client.create_pit(index=index, params=params))
        point_in_time = opened["pit_id"]
        after: list[Any] | None = None
        try:
            while True:
                body = every_body(plan, point_in_time, after, limit=_EVERY_PAGE)
                seconds = self._time_left()
                asked = self._sent(search_target("", _milliseconds(seconds)), orjson.dumps(body), seconds)
                hits = (await self._whole(stamp, index, await self._answered(stamp, index, asked)))["hits"]["hits"]
                if hits:
                    yield tuple(Hit(plan.tiers[0][0], hit["_source"]) for hit in hits)
                if len(hits) < _EVERY_PAGE:
                    return
                after = hits[-1]["sort"]
        finally:
            # It would end by itself after a minute; a failure to end it now harms nobody.
            with suppress(OpenSearchException):
                await self._client.delete_pit(body={"pit_id": [point_in_time]})

    async def close(self) -> None:
        """Close the connections."""
        await self._typeaheads.close()
        await self._client.close()

    async def _ask(
        self, stamp: Stamp, bodies: Sequence[tuple[str, dict[str, Any]]], seconds: float
    ) -> list[dict[str, Any]]:
        """The whole answers to searches of a kind each, in one request of at most so many seconds."""
        indices = [index_name(self._prefix, kind, stamp.generation) for kind, _ in bodies]
        if len(bodies) == 1:
            target, body = search_target(indices[0], _milliseconds(seconds)), orjson.dumps(bodies[0][1])
            answers = [await self._answered(stamp, indices[0], self._sent(target, body, seconds))]
        else:
            several = zip(indices, (body for _, body in bodies), strict=True)
            body = searches_body(several, _milliseconds(seconds))
            answers = (await self._answered(stamp, indices[0], self._sent("/_msearch", body, seconds)))["responses"]
        return [await self._whole(stamp, index, answer) for index, answer in zip(indices, answers, strict=True)]

    async def _sent(self, target: str, body: bytes, seconds: float) -> dict[str, Any]:
        # Past the client's own methods: what they do to a request costs more than the rest of its way.
        transport = self._client.transport
        answer: dict[str, Any] = await transport.perform_request("POST", target, body=body, timeout=seconds)
        return answer

    def _of_shards(self, seconds: float) -> int:
        """Milliseconds that a shard may take of a request's seconds."""
        return _milliseconds(self.shards_share * seconds)

    def _time_left(self) -> float:
        """Seconds that a request may take now."""
        seconds = time_left(self._timeout)
        if seconds <= 0:
            raise BackendUnavailable("there was no time left to ask the engine")
        return seconds

    async def _answered(self, stamp: Stamp, index: str, answer: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The answer, however incomplete, or our own failure."""
        try:
            return await answer
        except OpenSearchException as error:
            status = error.status_code if isinstance(error, TransportError) else None
            raise await self._failure(stamp, index, status) from error

    async def _whole(self, stamp: Stamp, index: str, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, if nothing of it is missing."""
        if "error" in answer:
            raise await self._failure(stamp, index, answer.get("status")) from ValueError(str(answer["error"]))
        if answer["timed_out"] or answer["_shards"]["failed"] or answer.get("terminated_early"):
            raise BackendUnavailable(f"a search in {index} came back incomplete")
        return answer

    async def _failure(self, stamp: Stamp, index: str, status: object) -> BackendUnavailable:
        """What the status of a failed search in a generation says."""
        if status == HTTPStatus.NOT_FOUND:
            return GenerationGone(f"{index} is no longer there")
        # While an index is being deleted its shards go first: the status is then that of a cluster in trouble.
        if status == HTTPStatus.SERVICE_UNAVAILABLE and (await self.live()).generation != stamp.generation:
            return GenerationGone(f"{index} is on its way out")
        return BackendUnavailable(f"a search in {index} failed")


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _page(ask: Ask, answer: dict[str, Any]) -> Page:
    hits = tuple(Hit(tier_of(ask.plan, hit["_score"]), hit["_source"]) for hit in answer["hits"]["hits"])
    counts: tuple[int, ...] = ()
    if ask.sorts:
        buckets = answer["aggregations"]["sorts"]["buckets"]
        counts = tuple(buckets[str(place)]["doc_count"] for place in range(len(ask.sorts)))
    if not ask.total:
        return Page(hits, None, counts)
    total = answer["hits"]["total"]
    if total["relation"] != "eq":
        raise BackendUnavailable("the engine counted only in part")
    return Page(hits, total["value"], counts)
