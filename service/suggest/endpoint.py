"""GET /suggest in the application: public, cacheable for seconds, and 304 by its entity tag (C1)."""

from typing import Final

from starlette.types import Scope

from service.http.callers import http_caller
from service.http.responses import Answer, Asked, Endpoint, problem_answer, requests_in_flight_of, stamp_headers
from service.runtime.addresses import Proxies
from service.runtime.caller import Channel
from service.runtime.wire import JSON, entity_tags, header
from service.suggest.responder import Refused, Suggestions, SuggestRequest, SuggestResponder

CACHE_CONTROL: Final = (b"cache-control", b"public, max-age=3")
# In a request's scope: how far the fast path has got with it.
SUGGEST_REQUEST: Final = "shop_directory.suggest_request"


def suggest_endpoint(responder: SuggestResponder, trusted: Proxies) -> Endpoint:
    """The endpoint of a responder; headers of `trusted` proxies say whose request it is."""

    async def answer(asked: Asked) -> Answer:
        request: SuggestRequest = asked.scope.get(SUGGEST_REQUEST) or _request_of(asked.scope, trusted)
        try:
            response = await responder.respond(request)
        finally:
            responder.flush_metrics()
        return answer_of(response)

    return Endpoint(("GET", "HEAD"), answer)


def answer_of(response: Suggestions | Refused) -> Answer:
    """A response as HTTP sends it."""
    if isinstance(response, Refused):
        return problem_answer(response.error, (*stamp_headers(response.stamp), *response.quota))
    headers = (CACHE_CONTROL, (b"etag", response.tag), *stamp_headers(response.snapshot.stamp), *response.quota)
    if response.cached is None:
        return Answer(304, b"", None, headers)
    return Answer(200, response.cached.query + response.cached.results, JSON, headers)


def _request_of(scope: Scope, trusted: Proxies) -> SuggestRequest:
    caller = http_caller(scope, Channel.REST, trusted)
    tags = entity_tags(header(scope["headers"], b"if-none-match"))
    return SuggestRequest(scope["query_string"], requests_in_flight_of(scope), caller.address, caller.token, tags)
