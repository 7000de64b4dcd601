"""GET /suggest: public, cacheable for seconds, and answered 304 from the stamp alone when nothing has changed (C1)."""

from typing import Final

from service.addresses import Proxies
from service.admission import Admission
from service.caller import Channel
from service.errors import ServiceError
from service.limits.policy import Bucket
from service.live import LiveData
from service.measures import Measures
from service.rest.answers import Answer, Asked, Endpoint, Headers, problem_answer, stamp_headers
from service.rest.callers import http_caller
from service.search.protocol import Snapshot
from service.suggest import entity_tag, parse
from service.suggesting import Suggesting
from service.wire import JSON, header

CACHE: Final = (b"cache-control", b"public, max-age=3")


def suggest_endpoint(
    live: LiveData, suggesting: Suggesting, admission: Admission, believed: Proxies, measures: Measures
) -> Endpoint:
    """The endpoint on live data; `believed` proxies tell whose call it is."""

    async def answer(asked: Asked) -> Answer:
        counted: Headers = ()
        raw: bytes = asked.scope["query_string"]
        try:
            caller = http_caller(asked.scope, Channel.REST, believed)
            taken = admission.admit_at_once(caller.address, Bucket.SUGGEST) if caller.token is None else None
            counted = taken if taken is not None else (await admission.admit(caller, Bucket.SUGGEST)).headers
            typed = parse(raw)
        except ServiceError as error:
            return problem_answer(error, counted)
        known = known_tags(header(asked.headers, b"if-none-match"))

        async def work(snapshot: Snapshot) -> Answer:
            tag = entity_tag(snapshot.stamp, typed)
            headers = (CACHE, (b"etag", tag.encode()), *stamp_headers(snapshot.stamp), *counted)
            unchanged = tag in known or "*" in known
            if known:
                measures.cache("etag", hit=unchanged)
            if unchanged:
                return Answer(304, b"", None, headers)
            found = await suggesting.answer(snapshot, raw, typed)
            return Answer(200, found.lead + found.tail, JSON, headers)

        answered = await live.ask(work, asked.request_id)
        if isinstance(answered.result, ServiceError):
            return problem_answer(answered.result, (*stamp_headers(answered.stamp), *counted))
        return answered.result

    return Endpoint(("GET", "HEAD"), answer)


def known_tags(if_none_match: str | None) -> frozenset[str]:
    """The tags that the caller has; a weak mark does not matter here."""
    if if_none_match is None:
        return frozenset()
    return frozenset(tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
