"""Offers and merges: offer ids, checkout URLs, monetised URLs, the audit of a merge, and the order of lists."""

import re
from typing import Final
from urllib.parse import urlsplit

from shop_directory.conformance.exchange import NothingToSeeError, Part, Response
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.rules.statements import KINDS
from shop_directory.conformance.service_under_test import PROBED, ServiceUnderTest, expect_equal

_FULL: Final = 100
_TRIED: Final = 8
# A host name and no IP address: its last label has a letter.
_HOST: Final = re.compile(r"[^:]*[a-z][^:.]*")
_VERDICTS: Final = ("likely_same", "likely_different", "insufficient_evidence")


@rule("I38", "An offer is identified by its offer_id, a string.")
async def _offer_id(service: ServiceUnderTest) -> None:
    page = (await service.tool("find_shop", {"query": "", "limit": _FULL})).json()
    with_offers = [shop for shop in page["results"].each() if shop.value.get("offers")]
    found = [offer["offer_id"].text() for shop in with_offers for offer in shop["offers"].each()]
    if not found:
        raise NothingToSeeError("an offer among the first shops")
    response = await service.tool("resolve_checkout_url", {"offer_id": found[0]})
    if response.status != 200:  # noqa: PLR2004 - of HTTP
        response.problem(404, "no_valid_checkout_url")


@rule(
    "I64", "monetize_offer needs offer_id, takes a boolean affiliate and returns a monetised checkout URL.", Need.TOKEN
)
async def _monetize(service: ServiceUnderTest) -> None:
    await _expect_arguments(service, "monetize_offer")
    document = (await _resolved(service, "monetize_offer", {}, applied=True)).json()
    _expect_url(document)
    document["monetization"]["network"].text()
    document["monetization"]["program_id"].text()
    arguments = {"offer_id": document["offer_id"].text(), "affiliate": False}
    plain = (await service.tool("monetize_offer", arguments)).json()
    plain["affiliate"]["applied"].expect(value=False)
    plain["monetization"].expect(None)


@rule("I65", "resolve_checkout_url needs offer_id, takes a boolean affiliate and returns a validated checkout URL.")
async def _resolve(service: ServiceUnderTest) -> None:
    await _expect_arguments(service, "resolve_checkout_url")
    response = await _resolved(service, "resolve_checkout_url", {})
    _expect_url(response.json())
    response.json()["affiliate"]["applied"].expect(value=False)
    _expect_url((await _resolved(service, "resolve_checkout_url", {"affiliate": True})).json())


@rule(
    "I66",
    "resolve_conflict needs from_shop_id, takes to_shop_id, audits the merge and writes nothing.",
    Need.TOKEN,
    alone=True,
)
async def _conflict(service: ServiceUnderTest) -> None:
    (await service.tool("resolve_conflict", {})).problem(400)
    if len(service.subjects.shops) < 2:  # noqa: PLR2004 - a pair
        raise NothingToSeeError("two shops in the catalogue")
    one, other = service.subjects.shops[:2]
    before = await service.tool("get_shop", {"shop_domain": one.domain})
    pair = (await service.tool("resolve_conflict", {"from_shop_id": one.id, "to_shop_id": other.id})).json()
    pair["from"]["id"].expect(one.id)
    pair["to"]["id"].expect(other.id)
    pair["evidence"].each()
    pair["verdict"].one_of(*_VERDICTS)
    alone = (await service.tool("resolve_conflict", {"from_shop_id": one.id})).json()
    alone["candidates"].each()
    (await service.tool("resolve_conflict", {"from_shop_id": service.unknown_id})).problem(404, "shop_not_found")
    after = await service.fresh.tool("get_shop", {"shop_domain": one.domain})
    expect_equal(before, after, "the same shop after the audit as before")


@rule(
    "M11.other_lists",
    "Coupons are listed verified ones first, the latest tested first; trust signals by their kinds; merge candidates "
    "by verdict, then agreeing evidence.",
)
async def _other_orders(service: ServiceUnderTest) -> None:
    for shop_id in service.subjects.coupon_shops[:PROBED]:
        results = (await service.tool("list_coupons", {"shop_domain": shop_id})).json()["results"]
        order = [
            (coupon["verificationStatus"].text(), coupon["lastVerifiedAt"].value or "") for coupon in results.each()
        ]
        if order != sorted(order, reverse=True):
            raise results.broken("verified_applied first, and within each status the latest tested first")
    for shop in service.subjects.shops[:PROBED] if service.token else ():
        signals = (await service.tool("get_trust", {"shop_domain": shop.domain})).json()["signals"]
        kinds = [kind for signal in signals.each() if (kind := signal["kind"].text()) in KINDS]
        if kinds != sorted(kinds, key=KINDS.index):
            raise signals.broken(f"the order {', '.join(KINDS)}")
        candidates = (await service.tool("resolve_conflict", {"from_shop_id": shop.id})).json()["candidates"]
        ranks = [
            (
                _VERDICTS.index(one["verdict"].one_of(*_VERDICTS)),
                -sum(e["agrees"].flag() for e in one["evidence"].each()),
            )
            for one in candidates.each()
        ]
        if ranks != sorted(ranks):
            raise candidates.broken(f"the order {', '.join(_VERDICTS)}, and within each most agreeing evidence first")
    if not service.subjects.coupon_shops:
        raise NothingToSeeError("a usable coupon")


async def _expect_arguments(service: ServiceUnderTest, tool: str) -> None:
    (await service.tool(tool, {})).problem(400)
    (await service.tool(tool, {"offer_id": service.unknown_id})).problem(404, "offer_not_found")
    (await service.tool(tool, {"offer_id": service.unknown_id, "affiliate": "yes"})).problem(400)


async def _resolved(
    service: ServiceUnderTest, tool: str, arguments: dict[str, bool], *, applied: bool | None = None
) -> Response:
    """The response for the first offer with a valid URL, which goes through a programme if `applied`."""
    offers = [offer_id for shop in service.subjects.shops for offer_id in shop.offers[:1]]
    for offer_id in offers[:_TRIED]:
        response = await service.tool(tool, {"offer_id": offer_id, **arguments})
        if response.status != 200:  # noqa: PLR2004 - of HTTP
            response.problem(404, "no_valid_checkout_url")
            continue
        response.json()["offer_id"].expect(offer_id)
        if applied in {None, response.json()["affiliate"]["applied"].flag()}:
            return response
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
