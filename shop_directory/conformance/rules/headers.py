"""The rules of what an answer says beside its body: which data it is from, how long it may be kept, who may read it."""

from typing import Final

from shop_directory.conformance import mcp
from shop_directory.conformance.exchange import Ask, Part, Reply
from shop_directory.conformance.mcp import Era
from shop_directory.conformance.rule import rule
from shop_directory.conformance.rules.suggest import suggested
from shop_directory.conformance.service_under_test import Visit, steadily

_ELSEWHERE: Final = ("origin", "https://elsewhere.example")
_ALLOW: Final = "access-control-allow-origin"
_STAMP: Final = ("x-generation", "x-data-as-of")
_REQUEST_ID: Final = "x-request-id"
_UNCHANGED: Final = 304


@rule("E5.request_id", "Every answer has a request id of its own in a header, over MCP in _meta, never in the body.")
async def _names_each_answer(visit: Visit) -> None:
    replies = [
        await visit.tool("list_categories", {}),
        await visit.tool("get_shop", {"shop_domain": visit.unknown_domain}),
        await suggested(visit, ""),
        await visit.get("/health"),
        await visit.get("/no-such-path"),
    ]
    seen: set[str] = set()
    for reply in replies:
        request_id = reply.header(_REQUEST_ID) or ""
        if not request_id or request_id in seen:
            raise reply.broken(f"a {_REQUEST_ID} of its own", f"{_REQUEST_ID}: {request_id or 'missing'}")
        if request_id.encode() in reply.body:
            raise reply.broken("a body without its request id")
        seen.add(request_id)
    for era in Era:
        result = (await mcp.call(visit, era, "list_categories")).result()
        result["_meta"][_REQUEST_ID].text()


@rule("C1.http", "/suggest has an ETag, public and max-age=3, and answers 304 to who has it; all else is no-store.")
async def _may_be_kept(visit: Visit) -> None:
    async def compare(*, fresh: bool) -> None:
        first = await suggested(visit, "a", fresh=fresh)
        tag = first.header("etag") or ""
        _expect_public(first)
        again = await visit.get("/suggest?q=a", ("if-none-match", tag), fresh=fresh)
        again.expect_status(_UNCHANGED)
        _expect_public(again)
        if again.body or again.header("etag") != tag:
            raise again.broken(f"no body, and the etag {tag}", f"etag: {again.header('etag')}, {again.shown}")

    await steadily(compare)
    (await visit.get("/suggest?q=a", ("if-none-match", '"another"'))).expect_status(200)
    replies = [
        await visit.tool("list_categories", {}),
        await visit.tool("get_shop", {"shop_domain": visit.unknown_domain}),
        (await mcp.call(visit, Era.HANDSHAKE, "list_categories")).reply,
        *[await visit.get(path) for path in ("/suggest?q=%ff", "/health", "/ready", "/version", "/no-such-path")],
    ]
    for reply in replies:
        if "no-store" not in _directives(reply):
            raise reply.broken("cache-control: no-store", _cache_control(reply))


@rule("C2", "Answers from the catalogue tell its generation and time, in headers, or in _meta over MCP.")
async def _tells_its_data(visit: Visit) -> None:
    async def compare(*, fresh: bool) -> None:
        replies = [await visit.tool("list_categories", {}, fresh=fresh), await suggested(visit, "", fresh=fresh)]
        stamps = [_stamp(reply) for reply in replies]
        for era in Era:
            message = await mcp.call(visit, era, "list_categories", fresh=fresh)
            meta = message.result()["_meta"]
            replies.append(message.reply)
            stamps.append(tuple(meta[name].text() for name in _STAMP))
        for reply, stamp in zip(replies, stamps, strict=True):
            Part(reply, "x-data-as-of", stamp[1]).time()
            if stamp != stamps[0]:
                raise reply.broken(f"the same generation and time at every door: {stamps[0]}", f"{stamp}")

    await steadily(compare)


@rule("C3", "/suggest may be read by pages of any origin, everything else by none that is not configured.")
async def _may_be_read_elsewhere(visit: Visit) -> None:
    preflight = Ask("OPTIONS", "/suggest?q=a", headers=(_ELSEWHERE, ("access-control-request-method", "GET")))
    for reply in (
        await visit.get("/suggest?q=", _ELSEWHERE),
        await visit.get("/suggest", _ELSEWHERE),
        await visit.ask(preflight),
    ):
        if reply.header(_ALLOW) != "*":
            raise reply.broken(f"{_ALLOW}: *", f"{_ALLOW}: {reply.header(_ALLOW) or 'missing'}")
    asked = (
        Ask("POST", "/tool/list_categories", b"{}", (("content-type", "application/json"), _ELSEWHERE)),
        Ask("OPTIONS", "/tool/list_categories", headers=(_ELSEWHERE, ("access-control-request-method", "POST"))),
        Ask("GET", "/health", headers=(_ELSEWHERE,)),
    )
    for ask in asked:
        reply = await visit.ask(ask)
        if reply.header(_ALLOW) is not None:
            raise reply.broken(f"no {_ALLOW} for a page of {_ELSEWHERE[1]}", f"{_ALLOW}: {reply.header(_ALLOW)}")


def _stamp(reply: Reply) -> tuple[str, ...]:
    values = tuple(reply.header(name) or "" for name in _STAMP)
    if not all(values):
        raise reply.broken(f"the headers {' and '.join(_STAMP)}", f"{dict(zip(_STAMP, values, strict=True))}")
    return values


def _expect_public(reply: Reply) -> None:
    tag = reply.header("etag") or ""
    if _directives(reply) != {"public", "max-age=3"} or not tag.startswith('"'):
        raise reply.broken(
            "a strong etag and cache-control: public, max-age=3", f"etag: {tag}, {_cache_control(reply)}"
        )


def _directives(reply: Reply) -> set[str]:
    return {part.strip().lower() for part in (reply.header("cache-control") or "").split(",")}


def _cache_control(reply: Reply) -> str:
    return f"cache-control: {reply.header('cache-control') or 'missing'}"
