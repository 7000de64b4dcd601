"""Offers and merges: offer ids, checkout URLs, monetised URLs, the audit of a merge, and the order of lists."""

import re
from typing import Final
from urllib.parse import urlsplit

from shop_directory.conformance.exchange import NothingToSeeError, Part, require
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.rules.statements import KINDS
from shop_directory.conformance.service_under_test import FULL, PROBED, ServiceUnderTest, expect_equal

_TRIED: Final = 8
# A host name and no IP address: its last label has a letter.
_HOST: Final = re.compile(r"[^:]*[a-z][^:.]*")
_VERDICTS: Final = ("likely_same", "likely_different", "insufficient_evidence")


@rule("I38", "An offer is identified by its offer_id, a string.")
async def _offer_id(service: ServiceUnderTest) -> None:
    page = await service.read("find_shop", {"query": "", "limit": FULL})
    with_offers = [shop for shop in page["results"].each() if shop.value.get("offers")]
    found = [offer["offer_id"].text() for shop in with_offers for offer in shop["offers"].each()]
    offer_id = require(found, "an offer among the first shops")[0]
    await _resolved(service, "resolve_checkout_url", offer_id)


@rule(
    "I64", "monetize_offer needs offer_id, takes a boolean affiliate and returns a monetised checkout URL.", Need.TOKEN
)
async def _monetize(service: ServiceUnderTest) -> None:
    await _expect_arguments(service, "monetize_offer")
    document = await _first_resolved(service, "monetize_offer", {}, applied=True)
    _expect_url(document)
    document["monetization"]["network"].text()
    document["monetization"]["program_id"].text()
    plain = await service.read("monetize_offer", {"offer_id": document["offer_id"].text(), "affiliate": False})
    plain["affiliate"]["applied"].expect(value=False)
    plain["monetization"].expect(None)


@rule("I65", "resolve_checkout_url needs offer_id, takes a boolean affiliate and returns a validated checkout URL.")
async def _resolve(service: ServiceUnderTest) -> None:
    await _expect_arguments(service, "resolve_checkout_url")
    document = await _first_resolved(service, "resolve_checkout_url", {})
    _expect_url(document)
    document["affiliate"]["applied"].expect(value=False)
    _expect_url(await _first_resolved(service, "resolve_checkout_url", {"affiliate": True}))


@rule(
    "I66",
    "resolve_conflict needs from_shop_id, takes to_shop_id, audits the merge and writes nothing.",
    Need.TOKEN,
    alone=True,
)
async def _conflict(service: ServiceUnderTest) -> None:
    (await service.tool("resolve_conflict", {})).problem(400)
    require(len(service.subjects.shops) > 1, "two shops in the catalogue")
    one, other = service.subjects.shops[:2]
    before = await service.about_shop("get_shop", one.domain)
    pair = await service.read("resolve_conflict", {"from_shop_id": one.id, "to_shop_id": other.id})
    pair["from"]["id"].expect(one.id)
    pair["to"]["id"].expect(other.id)
    pair["evidence"].each()
    pair["verdict"].one_of(*_VERDICTS)
    (await service.read("resolve_conflict", {"from_shop_id": one.id}))["candidates"].each()
    (await service.tool("resolve_conflict", {"from_shop_id": service.unknown_id})).problem(404, "shop_not_found")
    after = await service.fresh.about_shop("get_shop", one.domain)
    expect_equal(before, after, "the same shop after the audit as before")


@rule(
    "M11.other_lists",
    "Coupons are listed verified ones first, the latest tested first; trust signals by their kinds; merge candidates "
    "by verdict, then agreeing evidence.",
)
async def _other_orders(service: ServiceUnderTest) -> None:
    with_codes = list(service.subjects.codes)
    for shop_id in with_codes[:PROBED]:
        results = (await service.read("list_coupons", {"shop_domain": shop_id}))["results"]
        tested = [(one["verificationStatus"].text(), one["lastVerifiedAt"].value or "") for one in results.each()]
        in_order = tested == sorted(tested, reverse=True)
        results.must(in_order, "verified_applied first, and within each status the latest tested first")
    for shop in service.subjects.shops[:PROBED] if service.token else ():
        signals = (await service.read("get_trust", {"shop_domain": shop.domain}))["signals"]
        kinds = [kind for signal in signals.each() if (kind := signal["kind"].text()) in KINDS]
        signals.must(kinds == sorted(kinds, key=KINDS.index), f"the order {', '.join(KINDS)}")
        candidates = (await service.read("resolve_conflict", {"from_shop_id": shop.id}))["candidates"]
        ranks = [(_VERDICTS.index(one["verdict"].one_of(*_VERDICTS)), -_agreeing(one)) for one in candidates.each()]
        expected = f"the order {', '.join(_VERDICTS)}, and within each most agreeing evidence first"
        candidates.must(ranks == sorted(ranks), expected)
    require(with_codes, "a usable coupon")


def _agreeing(audit: Part) -> int:
    return sum(evidence["agrees"].flag() for evidence in audit["evidence"].each())


async def _expect_arguments(service: ServiceUnderTest, tool: str) -> None:
    (await service.tool(tool, {})).problem(400)
    (await service.tool(tool, {"offer_id": service.unknown_id})).problem(404, "offer_not_found")
    (await service.tool(tool, {"offer_id": service.unknown_id, "affiliate": "yes"})).problem(400)


async def _resolved(service: ServiceUnderTest, tool: str, offer_id: str, **affiliate: bool) -> Part | None:
    """The response for an offer; None where the offer has no valid URL."""
    response = await service.tool(tool, {"offer_id": offer_id, **affiliate})
    if response.status != 200:  # noqa: PLR2004 - of HTTP
        response.problem(404, "no_valid_checkout_url")
        return None
    return response.json()


async def _first_resolved(
    service: ServiceUnderTest, tool: str, affiliate: dict[str, bool], *, applied: bool | None = None
) -> Part:
    """The response for the first offer with a valid URL, which goes through a programme if `applied`."""
    offers = [offer_id for shop in service.subjects.shops for offer_id in shop.offers[:1]]
    for offer_id in offers[:_TRIED]:
        document = await _resolved(service, tool, offer_id, **affiliate)
        if document is not None:
            document["offer_id"].expect(offer_id)
            if applied in {None, document["affiliate"]["applied"].flag()}:
                return document
    raise NothingToSeeError(f"a usable offer{' of a shop with a programme' if applied else ''} among the first ones")


def _expect_url(document: Part) -> None:
    url = document["checkout_url"]
    try:
        found = urlsplit(url.text())
        is_safe = found.scheme == "https" and found.username is None and found.port in {None, 443}
    except ValueError:
        raise url.broken("a URL") from None
    is_named = _HOST.fullmatch(found.hostname or "")
    url.must(is_safe and is_named, "an https URL with a host's name, without credentials, on the usual port")
