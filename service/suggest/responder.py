"""The responder of suggest requests, which the fast path, the endpoint and MCP completion share.

The steps have the order of R5: the quota, the query, the search. The result of each step is stored in the request, so
that no step is repeated when the endpoint continues a request of the fast path.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from index_mappings.generations import Stamp
from service.calls.admission import Admission
from service.calls.live_data import LiveData, LiveResult, unavailable
from service.errors import OverloadedError, ServiceError
from service.insights.counting import InsightCounter
from service.limits.policy import Bucket, QuotaHeaders
from service.runtime.caller import Caller, Channel
from service.suggest.wire import (
    NO_RESULTS,
    CachedResponse,
    ParsedQuery,
    ResponseCache,
    encode_query,
    encode_results,
    entity_tag,
    parse,
)
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import RequestContext, bind_request
from shop_directory.search.failures import BackendUnavailable, GenerationGone
from shop_directory.search.protocol import Snapshot
from shop_directory.typeahead.suggestions import SuggestQuery, SuggestResult

_MEBIBYTE: Final = 1024 * 1024


@dataclass(slots=True)
class SuggestRequest:
    """A suggest request with its raw query string, and the results of the steps that are done.

    `tags` are the entity tags of the responses that the caller has, `quota` the headers of the quota, once the request
    has been counted. `generation_gone` says that the generation that was confirmed last has been removed.
    """

    raw: bytes
    context: RequestContext
    address: str
    token: str | None = None
    tags: frozenset[str] = frozenset()
    quota: QuotaHeaders | None = None
    parsed: ParsedQuery | None = None
    generation_gone: bool = False


@dataclass(slots=True)
class Suggestions:
    """A response with suggestions of a snapshot, and its entity tag with quotes; `cached` is None for 304."""

    snapshot: Snapshot
    quota: QuotaHeaders
    tag: bytes
    cached: CachedResponse | None


@dataclass(slots=True)
class Refused:
    """A response with an error, and the stamp of the generation that it comes from, if any.

    `quota` is empty where the request was not counted, or where the error has these headers.
    """

    error: ServiceError
    quota: QuotaHeaders = ()
    stamp: Stamp | None = None


_OVERLOADED: Final = Refused(OverloadedError())


class SuggestResponder:
    """Responds to suggest requests."""

    def __init__(
        self,
        live: LiveData,
        admission: Admission,
        cache_mb: int,
        metrics: Metrics = NO_METRICS,
        *,
        insights: InsightCounter | None = None,
    ) -> None:
        """Start with an empty cache of so many mebibytes; 0 caches nothing."""
        self._insights = insights
        self._live = live
        self.current = live.current
        self._admission = admission
        self._quota = admission.address_quota(Bucket.SUGGEST)
        self._cache = ResponseCache(cache_mb * _MEBIBYTE)
        self._metrics = metrics
        self._hits = 0

    def respond_now(
        self, request: SuggestRequest, snapshot: Snapshot, admits: Callable[[], bool] | None = None
    ) -> Suggestions | Refused | None:
        """Respond without I/O; None where `respond` has to wait for something.

        The results of steps are stored in the request. The snapshot is what `current` returned in this event-loop tick.
        `admits` says whether a request that is not cached may cause work; None where the request has a slot already.
        """
        cached = self._cache.response(snapshot.stamp.key, request.raw)
        # A cached response costs no more than a refusal, so it is sent at a full gate too.
        if cached is None and admits is not None and not admits():
            return _OVERLOADED
        try:
            if request.quota is None:
                request.quota = None if request.token else self._quota.admit(request.address)
                if request.quota is None:
                    return None
            return self._noted(request, self._suggestions(snapshot, request, request.quota, cached))
        except ServiceError as error:
            return Refused(error, request.quota or ())
        except GenerationGone:
            request.generation_gone = True
            return None
        except BackendUnavailable as error:
            return Refused(unavailable(error, request.context.request_id), request.quota or ())

    async def respond(self, request: SuggestRequest) -> Suggestions | Refused:
        """Respond, and wait if necessary: for a token, the quota, or the live generation."""
        try:
            quota = request.quota
            if quota is None:
                quota = request.quota = await self._admit(request)
            snapshot = None if request.generation_gone else self.current()
            if snapshot is not None and (response := self.respond_now(request, snapshot)) is not None:
                return response
            if request.parsed is None:
                request.parsed = parse(request.raw)
        except ServiceError as error:
            return Refused(error, request.quota or ())

        async def work(snapshot: Snapshot) -> Suggestions:
            return self._noted(request, self._suggestions(snapshot, request, quota, None))

        live = await self._live.run(work, request.context.request_id, generation_gone=request.generation_gone)
        if isinstance(live.result, ServiceError):
            return Refused(live.result, quota, live.stamp)
        return live.result

    async def suggest(self, query: SuggestQuery, request_id: str) -> LiveResult[SuggestResult]:
        """Search for a transport that encodes suggestions in its own way; the caller has been admitted."""

        async def work(snapshot: Snapshot) -> SuggestResult:
            return snapshot.suggest(query)

        return await self._live.run(work, request_id)

    def flush_metrics(self) -> None:
        """Report cache hits and counted requests since the last call: one report for many costs as much as for one."""
        if self._hits:
            self._metrics.cache("suggest", hit=True, times=self._hits)
            self._hits = 0
        self._quota.flush_metrics()

    async def _admit(self, request: SuggestRequest) -> QuotaHeaders:
        if request.token is None and (quota := self._quota.admit(request.address)) is not None:
            return quota
        caller = Caller(Channel.REST, request.context.request_id, request.token, request.address)
        return (await self._admission.admit(caller, Bucket.SUGGEST)).headers

    def _suggestions(
        self, snapshot: Snapshot, request: SuggestRequest, quota: QuotaHeaders, cached: CachedResponse | None
    ) -> Suggestions:
        """The suggestions of a snapshot for a counted request. Raises as `parse` and the snapshot do."""
        if cached is not None:
            request.context.generation = snapshot.stamp.generation
            if self._has_tag(request.tags, cached.tag):
                return Suggestions(snapshot, quota, cached.tag, None)
            self._hits += 1
            return Suggestions(snapshot, quota, cached.tag, cached)
        if request.parsed is None:
            request.parsed = parse(request.raw)
        request.context.generation = snapshot.stamp.generation
        tag = entity_tag(snapshot.stamp, request.parsed)
        if self._has_tag(request.tags, tag):
            return Suggestions(snapshot, quota, tag, None)
        return Suggestions(snapshot, quota, tag, self._search(snapshot, request, request.parsed, tag))

    def _noted(self, request: SuggestRequest, suggestions: Suggestions) -> Suggestions:
        """The same suggestions, counted where that is on; a 304 does not say whether it found anything."""
        if self._insights is not None:
            cached = suggestions.cached
            nothing = cached is not None and cached.results == NO_RESULTS
            self._insights.suggested(request.address, request.raw, nothing=nothing)
        return suggestions

    def _has_tag(self, tags: frozenset[str], tag: bytes) -> bool:
        if not tags:
            return False
        hit = "*" in tags or tag.decode() in tags
        self._metrics.cache("etag", hit=hit)
        return hit

    def _search(self, snapshot: Snapshot, request: SuggestRequest, parsed: ParsedQuery, tag: bytes) -> CachedResponse:
        cache, stamp = self._cache, snapshot.stamp.key
        query = parsed.query
        # What the results depend on.
        forms = query.forms
        key = (forms.texts, forms.marked, forms.dotted, query.country, query.limit) if cache.enabled else None
        results = cache.results(stamp, key)
        if cache.enabled:
            self._metrics.cache("suggest", hit=results is not None)
        if results is None:
            with bind_request(request.context):
                results = encode_results(snapshot.suggest(query))
            cache.put_results(stamp, key, results)
        response = CachedResponse.of(tag, encode_query(parsed), results)
        cache.put_response(stamp, request.raw, response)
        return response
