"""Offers and merges: ids of offers, checkout URLs, their monetised form, and the audit that writes nothing."""

import re
from typing import Final
from urllib.parse import urlsplit

from shop_directory.conformance.exchange import Part, Reply
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import Visit, expect_equal

_FULL: Final = 100
_TRIED: Final = 8
# A name and no number: its last label has a letter.
_HOST: Final = re.compile(r"[^:]*[a-z][^:.]*")

_VERDICTS: Final = ("likely_same", "likely_different", "insufficient_evidence")


@rule("I38", "An offer is known by its offer_id, a string.")
async def _offer_id(visit: Visit) -> None:
    page = (await visit.tool("find_shop", {"query": "", "limit": _FULL})).answer()
    with_offers = [shop for shop in page["results"].each() if shop.value.get("offers")]
    found = [offer["offer_id"].text() for shop in with_offers for offer in shop["offers"].each()]
    if not found:
        raise NothingToSeeError("an offer among the first shops")
    reply = await visit.tool("resolve_checkout_url", {"offer_id": found[0]})
    if reply.status != 200:  # noqa: PLR2004 - of HTTP
        reply.problem(404, "no_valid_checkout_url")


@rule("I64", "monetize_offer needs offer_id, takes a boolean affiliate and gives a monetised checkout URL.", Need.TOKEN)
async def _monetize(visit: Visit) -> None:
    await _expect_arguments(visit, "monetize_offer")
    document = (await _resolved(visit, "monetize_offer", {}, applied=True)).answer()
    _expect_url(document)
    document["monetization"]["network"].text()
    document["monetization"]["program_id"].text()
    arguments = {"offer_id": document["offer_id"].text(), "affiliate": False}
    plain = (await visit.tool("monetize_offer", arguments)).answer()
    plain["affiliate"]["applied"].expect(value=False)
    plain["monetization"].expect(None)


@rule("I65", "resolve_checkout_url needs offer_id, takes a boolean affiliate and gives a validated checkout URL.")
async def _resolve(visit: Visit) -> None:
    await _expect_arguments(visit, "resolve_checkout_url")
    reply = await _resolved(visit, "resolve_checkout_url", {})
    _expect_url(reply.answer())
    reply.answer()["affiliate"]["applied"].expect(value=False)
    _expect_url((await _resolved(visit, "resolve_checkout_url", {"affiliate": True})).answer())


@rule(
    "I66",
    "resolve_conflict needs from_shop_id, takes to_shop_id, audits the merge and writes nothing.",
    Need.TOKEN,
    alone=True,
)
async def _conflict(visit: Visit) -> None:
    (await visit.tool("resolve_conflict", {})).problem(400)
    if len(visit.seen.shops) < 2:  # noqa: PLR2004 - a pair
        raise NothingToSeeError("two shops in the catalogue")
    one, other = visit.seen.shops[:2]
    before = await visit.tool("get_shop", {"shop_domain": one.domain})
    pair = (await visit.tool("resolve_conflict", {"from_shop_id": one.id, "to_shop_id": other.id})).answer()
    pair["from"]["id"].expect(one.id)
    pair["to"]["id"].expect(other.id)
    pair["evidence"].each()
    pair["verdict"].one_of(*_VERDICTS)
    alone = (await visit.tool("resolve_conflict", {"from_shop_id": one.id})).answer()
    alone["candidates"].each()
    (await visit.tool("resolve_conflict", {"from_shop_id": visit.unknown_id})).problem(404, "shop_not_found")
    after = await visit.tool("get_shop", {"shop_domain": one.domain}, fresh=True)
    expect_equal(before, after, "the same shop after the audit as before")


async def _expect_arguments(visit: Visit, tool: str) -> None:
    (await visit.tool(tool, {})).problem(400)
    (await visit.tool(tool, {"offer_id": visit.unknown_id})).problem(404, "offer_not_found")
    (await visit.tool(tool, {"offer_id": visit.unknown_id, "affiliate": "yes"})).problem(400)


async def _resolved(visit: Visit, tool: str, arguments: dict[str, bool], *, applied: bool | None = None) -> Reply:
    """The answer for the first offer that has a valid URL, and if `applied` one through a programme."""
    offers = [offer_id for shop in visit.seen.shops for offer_id in shop.offers[:1]]
    for offer_id in offers[:_TRIED]:
        reply = await visit.tool(tool, {"offer_id": offer_id, **arguments})
        if reply.status != 200:  # noqa: PLR2004 - of HTTP
            reply.problem(404, "no_valid_checkout_url")
            continue
        reply.answer()["offer_id"].expect(offer_id)
        if applied in {None, reply.answer()["affiliate"]["applied"].flag()}:
            return reply
    raise NothingToSeeError(f"a usable offer{' of a shop with a programme' if applied else ''} among the first ones")


def _expect_url(document: Part) -> None:
    url = document["checkout_url"]
    try:
        found = urlsplit(url.text())
        is_safe = found.scheme == "https" and found.username is None and found.port in {None, 443}
    except ValueError:
        raise url.broken("a URL") from None
    if not is_safe or not _HOST.fullmatch(found.hostname or ""):
        raise url.broken("an https URL with a host's name, without credentials, on the usual port")
