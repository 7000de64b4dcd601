"""Response headers: request id, generation of the data, caching and CORS."""

from typing import Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Part, Request, Response
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import rule
from shop_directory.conformance.rules.suggest import suggested
from shop_directory.conformance.service_under_test import ServiceUnderTest, compare_with_retry

_ELSEWHERE: Final = ("origin", "https://elsewhere.example")
_ALLOW: Final = "access-control-allow-origin"
_STAMP: Final = ("x-generation", "x-data-as-of")
_REQUEST_ID: Final = "x-request-id"
_UNCHANGED: Final = 304


@rule(
    "E5.request_id", "Every response has a unique request id in a header, over MCP in _meta too, never in a REST body."
)
async def _has_a_request_id(service: ServiceUnderTest) -> None:
    responses = [
        await service.tool("list_categories", {}),
        await service.tool("get_shop", {"shop_domain": service.unknown_domain}),
        await suggested(service, ""),
        await service.get("/health"),
        await service.get("/no-such-path"),
    ]
    request_ids: set[str] = set()
    for response in responses:
        request_id = response.header(_REQUEST_ID) or ""
        if not request_id or request_id in request_ids:
            raise response.broken(f"a unique {_REQUEST_ID}", f"{_REQUEST_ID}: {request_id or 'missing'}")
        if request_id.encode() in response.body:
            raise response.broken("a body without its request id")
        request_ids.add(request_id)
    for era in Era:
        result = (await mcp.call(service, era, "list_categories")).result()
        result["_meta"][_REQUEST_ID].text()


@rule(
    "C1.http",
    "/suggest has an ETag, public and max-age=3, and answers 304 to a matching If-None-Match; all else is no-store.",
)
async def _may_be_cached(service: ServiceUnderTest) -> None:
    async def compare(*, fresh: bool) -> None:
        first = await suggested(service, "a", fresh=fresh)
        tag = first.header("etag") or ""
        _expect_public(first)
        again = await service.get("/suggest?q=a", ("if-none-match", tag), fresh=fresh)
        again.expect_status(_UNCHANGED)
        _expect_public(again)
        if again.body or again.header("etag") != tag:
            raise again.broken(f"no body, and the etag {tag}", f"etag: {again.header('etag')}, {again.shown}")

    await compare_with_retry(compare)
    (await service.get("/suggest?q=a", ("if-none-match", '"another"'))).expect_status(200)
    responses = [
        await service.tool("list_categories", {}),
        await service.tool("get_shop", {"shop_domain": service.unknown_domain}),
        (await mcp.call(service, Era.HANDSHAKE, "list_categories")).response,
        *[await service.get(path) for path in ("/suggest?q=%ff", "/health", "/ready", "/version", "/no-such-path")],
    ]
    for response in responses:
        if "no-store" not in _directives(response):
            raise response.broken("cache-control: no-store", _cache_control(response))


@rule("C2", "Responses from the catalogue state its generation and time, in headers, or in _meta over MCP.")
async def _states_its_data(service: ServiceUnderTest) -> None:
    async def compare(*, fresh: bool) -> None:
        responses = [await service.tool("list_categories", {}, fresh=fresh), await suggested(service, "", fresh=fresh)]
        stamps = [_stamp(response) for response in responses]
        for era in Era:
            message = await mcp.call(service, era, "list_categories", fresh=fresh)
            meta = message.result()["_meta"]
            responses.append(message.response)
            stamps.append(tuple(meta[name].text() for name in _STAMP))
        for response, stamp in zip(responses, stamps, strict=True):
            Part(response, "x-data-as-of", stamp[1]).time()
            if stamp != stamps[0]:
                raise response.broken(f"the same generation and time over every transport: {stamps[0]}", f"{stamp}")

    await compare_with_retry(compare)


@rule("C3", "Pages of any origin may read /suggest; everything else only those of configured origins.")
async def _cors_headers(service: ServiceUnderTest) -> None:
    preflight = Request("OPTIONS", "/suggest?q=a", headers=(_ELSEWHERE, ("access-control-request-method", "GET")))
    for response in (
        await service.get("/suggest?q=", _ELSEWHERE),
        await service.get("/suggest", _ELSEWHERE),
        await service.send(preflight),
    ):
        if response.header(_ALLOW) != "*":
            raise response.broken(f"{_ALLOW}: *", f"{_ALLOW}: {response.header(_ALLOW) or 'missing'}")
    requests = (
        Request("POST", "/tool/list_categories", b"{}", (("content-type", "application/json"), _ELSEWHERE)),
        Request("OPTIONS", "/tool/list_categories", headers=(_ELSEWHERE, ("access-control-request-method", "POST"))),
        Request("GET", "/health", headers=(_ELSEWHERE,)),
    )
    for request in requests:
        response = await service.send(request)
        if response.header(_ALLOW) is not None:
            raise response.broken(f"no {_ALLOW} for a page of {_ELSEWHERE[1]}", f"{_ALLOW}: {response.header(_ALLOW)}")


def _stamp(response: Response) -> tuple[str, ...]:
    values = tuple(response.header(name) or "" for name in _STAMP)
    if not all(values):
        raise response.broken(f"the headers {' and '.join(_STAMP)}", f"{dict(zip(_STAMP, values, strict=True))}")
    return values


def _expect_public(response: Response) -> None:
    tag = response.header("etag") or ""
    if _directives(response) != {"public", "max-age=3"} or not tag.startswith('"'):
        raise response.broken(
            "a strong etag and cache-control: public, max-age=3", f"etag: {tag}, {_cache_control(response)}"
        )


def _directives(response: Response) -> set[str]:
    return {part.strip().lower() for part in (response.header("cache-control") or "").split(",")}


def _cache_control(response: Response) -> str:
    return f"cache-control: {response.header('cache-control') or 'missing'}"
