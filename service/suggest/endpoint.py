"""The ASGI endpoint of GET /suggest: cacheable for seconds, and 304 by its entity tag (C1)."""

from typing import Final

from starlette.requests import Request
from starlette.types import Scope

from service.http.messages import (
    JSON,
    Answer,
    Endpoint,
    entity_tags,
    header,
    http_caller,
    problem_answer,
    request_context_of,
    stamp_headers,
)
from service.runtime.caller import Channel, Proxies
from service.suggest.responder import Refused, Suggestions, SuggestRequest, SuggestResponder

CACHE_CONTROL: Final = (b"cache-control", b"public, max-age=3")
# The key of a suggest request in its scope, where the fast path has started it.
SUGGEST_REQUEST: Final = "shop_directory.suggest_request"


def suggest_endpoint(responder: SuggestResponder, trusted: Proxies) -> Endpoint:
    """The endpoint of a responder; the caller's address is read from headers of `trusted` proxies."""

    async def answer(http_request: Request) -> Answer:
        scope = http_request.scope
        request: SuggestRequest = scope.get(SUGGEST_REQUEST) or _request_of(scope, trusted)
        try:
            response = await responder.respond(request)
        finally:
            responder.flush_metrics()
        return http_answer(response)

    return Endpoint(("GET", "HEAD"), answer)


def http_answer(response: Suggestions | Refused) -> Answer:
    """A response as an HTTP answer."""
    if isinstance(response, Refused):
        return problem_answer(response.error, (*stamp_headers(response.stamp), *response.quota))
    headers = (CACHE_CONTROL, (b"etag", response.tag), *stamp_headers(response.snapshot.stamp), *response.quota)
    if response.cached is None:
        return Answer(304, b"", None, headers)
    return Answer(200, response.cached.query + response.cached.results, JSON, headers)


def _request_of(scope: Scope, trusted: Proxies) -> SuggestRequest:
    caller = http_caller(scope, Channel.REST, trusted)
    tags = entity_tags(header(scope["headers"], b"if-none-match"))
    return SuggestRequest(scope["query_string"], request_context_of(scope), caller.address, caller.token, tags)
