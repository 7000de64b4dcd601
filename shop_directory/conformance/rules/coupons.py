"""Coupons: the envelope and its balance, what may be shown, and when a shop has none to be listed.

Two lists are looked at in most rules: that of all shops, and those of single shops, with codes and without.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from shop_directory.conformance.exchange import Part, Reply
from shop_directory.conformance.findings import NothingToSeeError, RuleBrokenError, TooLongError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.rules.shops import expect_absent
from shop_directory.conformance.service_under_test import Visit

REASONS: Final = ("expired", "verified_rejected", "reserved_test_domain", "policy")
_REJECTED: Final = "verified_rejected"
_SHOWN: Final = ("verified_applied", "unverified")
_PROOF: Final = re.compile("proof|artifact|artefact|screenshot|evidence|recording|transcript|receipt", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_RESERVED: Final = re.compile(r"(.*\.)?(test|example|invalid|localhost|example\.(com|net|org))", re.IGNORECASE)
# Clocks of two machines are seldom the same.
_SKEW: Final = timedelta(minutes=2)
_SAMPLE: Final = 2


@rule("I16", "validUntil is an ISO time, or null for a coupon without end.")
async def _valid_until(visit: Visit) -> None:
    for coupon in await _coupons(visit):
        if not coupon["validUntil"].is_null:
            coupon["validUntil"].time()


@rule("I17", "lastVerifiedAt is the time of the latest real test, or null when there was none.")
async def _last_verified(visit: Visit) -> None:
    for coupon in await _coupons(visit):
        tested = coupon["lastVerifiedAt"]
        if tested.is_null:
            if coupon["verificationStatus"].value == "verified_applied":
                raise tested.broken("the time of the test that a verified_applied code has passed")
        elif tested.time() > datetime.now(UTC) + _SKEW:
            raise tested.broken("a time that has passed")


@rule("I18", "list_coupons answers results, total_count and withheld with its four integer counts.")
async def _envelope(visit: Visit) -> None:
    for reply in await _lists(visit):
        document = reply.answer()
        document["results"].each()
        document["total_count"].whole()
        for reason in REASONS:
            document["withheld"][reason].whole()


@rule("I19", "note tells the balance of the counts in one sentence, for an empty list too.")
async def _note(visit: Visit) -> None:
    for reply in await _lists(visit):
        document = reply.answer()
        note = document["note"].text()
        if ". " in note or "\n" in note:
            raise document["note"].broken("one sentence")
        told = [int(number) for number in _NUMBER.findall(note)]
        for number in (_total(document), len(document["results"].values()), *_withheld(document)):
            if number and number not in told:
                raise document["note"].broken(f"a sentence that tells {number} too")


@rule("I20", "What list_coupons counts but does not return is exactly what withheld adds up to.")
async def _balance(visit: Visit) -> None:
    for reply in await _lists(visit):
        document = reply.answer()
        shown, withheld = len(document["results"].values()), sum(_withheld(document))
        if _total(document) - shown != withheld:
            raise reply.broken(
                f"total_count = {shown} results + {withheld} withheld", f"total_count = {_total(document)}"
            )


@rule("I39", "results hold verified_applied and unverified coupons only, and no artefact of a proof.")
async def _only_usable(visit: Visit) -> None:
    for coupon in await _coupons(visit):
        coupon["verificationStatus"].one_of(*_SHOWN)
        for name in coupon.keys():  # noqa: SIM118 - a part is no dict
            if _PROOF.search(name):
                raise coupon[name].broken("no artefact of a proof")


@rule("I40", "A verified_rejected coupon is never in results and counts in withheld.verified_rejected.")
async def _rejected(visit: Visit) -> None:
    found = 0
    for reply in await _lists(visit):
        document = reply.answer()
        for coupon in document["results"].each():
            if coupon["verificationStatus"].value == _REJECTED:
                raise coupon["verificationStatus"].broken("no rejected coupon in results")
        found += document["withheld"][_REJECTED].whole()
    if not found:
        raise NothingToSeeError("a coupon that a real test has rejected")


@rule("I41", "Expired coupons and those of reserved test domains are withheld, and counted under their reason.")
async def _withheld_reasons(visit: Visit) -> None:
    now = datetime.now(UTC)
    found = 0
    for reply in await _lists(visit):
        document = reply.answer()
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
async def _with_and_without(visit: Visit) -> None:
    everything = await _all(visit)
    shops = visit.seen.coupon_shops[:_SAMPLE]
    if not shops:
        raise NothingToSeeError("a usable coupon")
    for shop_id in shops:
        wanted = [coupon.value for coupon in everything.answer()["results"].each() if _shop_of(coupon) == shop_id]
        reply = await visit.tool("list_coupons", {"shop_domain": shop_id})
        if reply.answer()["results"].values() != wanted:
            raise reply.broken(f"the codes of {shop_id} that the list of all shops has ({len(wanted)})")


@rule("I57", "list_coupons says shop not found of an unknown shop and of one under review, never an empty list.")
async def _unknown_shop(visit: Visit) -> None:
    await expect_absent(visit, "list_coupons")


async def _all(visit: Visit) -> Reply:
    """The list of all shops.

    Raises:
        NothingToSeeError: it is longer than the operator hands out, or than a run reads.
    """
    try:
        reply = await visit.all_coupons()
    except TooLongError:
        raise NothingToSeeError("a list of all coupons that is not so long") from None
    if reply.status != 200 and reply.problem(400)["code"].value == "too_many_coupons":  # noqa: PLR2004 - of HTTP
        raise NothingToSeeError("a list of all coupons within the service's own bound")
    reply.answer()
    return reply


async def _lists(visit: Visit) -> tuple[Reply, ...]:
    """The list of all shops where it may be had, those of shops with codes, and those of shops perhaps without."""
    with_codes = visit.seen.coupon_shops
    without = tuple(shop.id for shop in visit.seen.shops if shop.id not in with_codes)
    replies = [
        await visit.tool("list_coupons", {"shop_domain": shop_id})
        for shop_id in (*with_codes[:_SAMPLE], *without[:_SAMPLE])
    ]
    try:
        return (await _all(visit), *replies)
    except (NothingToSeeError, RuleBrokenError):
        # Whether it may be had is a rule of its own.
        return tuple(replies)


async def _coupons(visit: Visit) -> tuple[Part, ...]:
    found = tuple(coupon for reply in await _lists(visit) for coupon in reply.answer()["results"].each())
    if not found:
        raise NothingToSeeError("a usable coupon")
    return found


def _shop_of(coupon: Part) -> str:
    return coupon["shop"]["id"].text()


def _total(document: Part) -> int:
    return document["total_count"].whole()


def _withheld(document: Part) -> tuple[int, ...]:
    return tuple(document["withheld"][reason].whole() for reason in REASONS)
