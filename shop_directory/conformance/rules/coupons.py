"""list_coupons: the envelope and its balance, which coupons may be shown, and unknown shops.

Most rules read the list of all shops and those of single shops, with codes and without.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from shop_directory.conformance.exchange import Part, Response
from shop_directory.conformance.findings import NothingToSeeError, RuleBrokenError, TooLongError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.rules.shops import expect_absent
from shop_directory.conformance.service_under_test import ServiceUnderTest

REASONS: Final = ("expired", "verified_rejected", "reserved_test_domain", "policy")
_REJECTED: Final = "verified_rejected"
_SHOWN: Final = ("verified_applied", "unverified")
_PROOF: Final = re.compile("proof|artifact|artefact|screenshot|evidence|recording|transcript|receipt", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_RESERVED: Final = re.compile(r"(.*\.)?(test|example|invalid|localhost|example\.(com|net|org))", re.IGNORECASE)
# The clocks of the two machines may differ.
_SKEW: Final = timedelta(minutes=2)
_SAMPLE: Final = 2


@rule("I16", "validUntil is an ISO timestamp, or null for a coupon without an end.")
async def _valid_until(service: ServiceUnderTest) -> None:
    for coupon in await _coupons(service):
        if not coupon["validUntil"].is_null:
            coupon["validUntil"].time()


@rule("I17", "lastVerifiedAt is the timestamp of the latest real test, or null when there was none.")
async def _last_verified(service: ServiceUnderTest) -> None:
    for coupon in await _coupons(service):
        tested = coupon["lastVerifiedAt"]
        if tested.is_null:
            if coupon["verificationStatus"].value == "verified_applied":
                raise tested.broken("the timestamp of the test that a verified_applied code has passed")
        elif tested.time() > datetime.now(UTC) + _SKEW:
            raise tested.broken("a timestamp in the past")


@rule("I18", "list_coupons returns results, total_count and withheld with its four integer counts.")
async def _envelope(service: ServiceUnderTest) -> None:
    for response in await _lists(service):
        document = response.json()
        document["results"].each()
        document["total_count"].whole()
        for reason in REASONS:
            document["withheld"][reason].whole()


@rule("I19", "note states the balance of the counts in one sentence, for an empty list too.")
async def _note(service: ServiceUnderTest) -> None:
    for response in await _lists(service):
        document = response.json()
        note = document["note"].text()
        if ". " in note or "\n" in note:
            raise document["note"].broken("one sentence")
        stated = [int(number) for number in _NUMBER.findall(note)]
        for number in (_total(document), len(document["results"].values()), *_withheld(document)):
            if number and number not in stated:
                raise document["note"].broken(f"a sentence that states {number} too")


@rule("I20", "total_count minus the number of results of list_coupons is the sum of the counts in withheld.")
async def _balance(service: ServiceUnderTest) -> None:
    for response in await _lists(service):
        document = response.json()
        shown, withheld = len(document["results"].values()), sum(_withheld(document))
        if _total(document) - shown != withheld:
            raise response.broken(
                f"total_count = {shown} results + {withheld} withheld", f"total_count = {_total(document)}"
            )


@rule("I39", "results has verified_applied and unverified coupons only, and no artefact of a proof.")
async def _only_usable(service: ServiceUnderTest) -> None:
    for coupon in await _coupons(service):
        coupon["verificationStatus"].one_of(*_SHOWN)
        for name in coupon.keys():  # noqa: SIM118 - a part is no dict
            if _PROOF.search(name):
                raise coupon[name].broken("no artefact of a proof")


@rule("I40", "A verified_rejected coupon is never in results and counts in withheld.verified_rejected.")
async def _rejected(service: ServiceUnderTest) -> None:
    found = 0
    for response in await _lists(service):
        document = response.json()
        for coupon in document["results"].each():
            if coupon["verificationStatus"].value == _REJECTED:
                raise coupon["verificationStatus"].broken("no rejected coupon in results")
        found += document["withheld"][_REJECTED].whole()
    if not found:
        raise NothingToSeeError("a coupon that a real test has rejected")


@rule("I41", "Expired coupons and those of reserved test domains are withheld, and counted under their reason.")
async def _withheld_reasons(service: ServiceUnderTest) -> None:
    now = datetime.now(UTC)
    found = 0
    for response in await _lists(service):
        document = response.json()
        for coupon in document["results"].each():
            ends = coupon["validUntil"]
            if not ends.is_null and ends.time() < now - _SKEW:
                raise ends.broken("no coupon that has expired")
            domain = coupon["shop"]["domain"]
            if _RESERVED.fullmatch(domain.text()):
                raise domain.broken("no coupon of a reserved test domain")
        found += document["withheld"]["expired"].whole() + document["withheld"]["reserved_test_domain"].whole()
    if not found:
        raise NothingToSeeError("a coupon that is withheld as expired or for its domain")


@rule("I56", "list_coupons works with and without a shop.")
async def _with_and_without(service: ServiceUnderTest) -> None:
    everything = await _all(service)
    shops = service.subjects.coupon_shops[:_SAMPLE]
    if not shops:
        raise NothingToSeeError("a usable coupon")
    for shop_id in shops:
        wanted = [
            coupon.value for coupon in everything.json()["results"].each() if coupon["shop"]["id"].text() == shop_id
        ]
        response = await service.tool("list_coupons", {"shop_domain": shop_id})
        if response.json()["results"].values() != wanted:
            raise response.broken(f"the codes of {shop_id} that the list of all shops has ({len(wanted)})")


@rule("I57", "list_coupons answers shop_not_found for an unknown shop and one under review, never an empty list.")
async def _unknown_shop(service: ServiceUnderTest) -> None:
    await expect_absent(service, "list_coupons")


async def _all(service: ServiceUnderTest) -> Response:
    """The list of all shops.

    Raises:
        NothingToSeeError: the list is longer than the service returns or than a run reads.
    """
    try:
        response = await service.all_coupons()
    except TooLongError:
        raise NothingToSeeError("a shorter list of all coupons") from None
    if response.status != 200 and response.problem(400)["code"].value == "too_many_coupons":  # noqa: PLR2004 - of HTTP
        raise NothingToSeeError("a list of all coupons within the service's own bound")
    response.json()
    return response


async def _lists(service: ServiceUnderTest) -> tuple[Response, ...]:
    """The list of all shops if it is available, and those of some shops with and without usable codes."""
    with_codes = service.subjects.coupon_shops
    without = tuple(shop.id for shop in service.subjects.shops if shop.id not in with_codes)
    responses = [
        await service.tool("list_coupons", {"shop_domain": shop_id})
        for shop_id in (*with_codes[:_SAMPLE], *without[:_SAMPLE])
    ]
    try:
        return (await _all(service), *responses)
    except (NothingToSeeError, RuleBrokenError):
        # Another rule checks whether this list is available.
        return tuple(responses)


async def _coupons(service: ServiceUnderTest) -> tuple[Part, ...]:
    found = tuple(coupon for response in await _lists(service) for coupon in response.json()["results"].each())
    if not found:
        raise NothingToSeeError("a usable coupon")
    return found


def _total(document: Part) -> int:
    return document["total_count"].whole()


def _withheld(document: Part) -> tuple[int, ...]:
    return tuple(document["withheld"][reason].whole() for reason in REASONS)
