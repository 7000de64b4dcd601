"""Coupons and reports: the balance of list_coupons, which coupons may be shown, and what a report takes and changes.

Reports are sent with --write only, and all about one shop.
"""

import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from shop_directory.conformance.exchange import (
    NothingToSeeError,
    Part,
    Response,
    RuleBrokenError,
    TooLongError,
    require,
)
from shop_directory.conformance.rule import Need, has, null_or, rule
from shop_directory.conformance.rules.shops import expect_absent
from shop_directory.conformance.service_under_test import Arguments, ServiceUnderTest, expect_equal

_REASONS: Final = ("expired", "verified_rejected", "reserved_test_domain", "policy")
_REJECTED: Final = "verified_rejected"
_SHOWN: Final = ("verified_applied", "unverified")
_PROOF: Final = re.compile("proof|artifact|artefact|screenshot|evidence|recording|transcript|receipt", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_RESERVED: Final = re.compile(r"(.*\.)?(test|example|invalid|localhost|example\.(com|net|org))", re.IGNORECASE)
# The clocks of the two machines may differ.
_SKEW: Final = timedelta(minutes=2)
_SAMPLE: Final = 2
_STATUS: Final = "wird gemeldet, Pruefung laeuft"
_ATTEMPTS: Final = 3
_CODE_REASONS: Final = ("invalid", "mismatch", "item_restricted", "min_order_missing")
_ISSUE_REASONS: Final = {
    "shop": ("unreachable", "no_longer_exists", "info_outdated", "wrong_category", "wrong_name_or_domain"),
    "fact": ("shipping_cost", "return_period", "payment_methods", "evidence_broken"),
}


async def _coupons(service: ServiceUnderTest) -> list[Part]:
    found = [coupon for document in await _lists(service) for coupon in document["results"].each()]
    return require(found, "a usable coupon")


async def _lists(service: ServiceUnderTest) -> list[Part]:
    """The list of all shops if it is available, and those of some shops with and without usable codes."""
    with_codes = list(service.subjects.codes)
    without = [shop.id for shop in service.subjects.shops if shop.id not in with_codes]
    asked = with_codes[:_SAMPLE] + without[:_SAMPLE]
    responses = [await service.about_shop("list_coupons", shop_id) for shop_id in asked]
    # Another rule checks whether this list is available.
    with suppress(NothingToSeeError, RuleBrokenError):
        responses.insert(0, await _all(service))
    return [response.json() for response in responses]


ROWS: Final = (
    rule("I16", "validUntil is an ISO timestamp, or null for a coupon without an end.")(
        has(_coupons, {"validUntil": null_or(Part.time)})
    ),
    rule("I18", "list_coupons returns results, total_count and withheld with its four integer counts.")(
        has(
            _lists,
            {"results": Part.each, "total_count": Part.whole, "withheld": dict.fromkeys(_REASONS, Part.whole)},
        )
    ),
)


@rule("I17", "lastVerifiedAt is the timestamp of the latest real test, or null when there was none.")
async def _last_verified(service: ServiceUnderTest) -> None:
    for coupon in await _coupons(service):
        tested = coupon["lastVerifiedAt"]
        if tested.value is None:
            is_untested = coupon["verificationStatus"].value != "verified_applied"
            tested.must(is_untested, "the timestamp of the test that a verified_applied code has passed")
        else:
            tested.must(tested.time() <= datetime.now(UTC) + _SKEW, "a timestamp in the past")


@rule("I19", "note states the balance of the counts in one sentence, for an empty list too.")
async def _note(service: ServiceUnderTest) -> None:
    for document in await _lists(service):
        note = document["note"].text()
        document["note"].must(". " not in note and "\n" not in note, "one sentence")
        stated = [0, *(int(number) for number in _NUMBER.findall(note))]
        for number in (document["total_count"].whole(), len(document["results"].values()), *_withheld(document)):
            document["note"].must(number in stated, f"a sentence that states {number} too")


@rule("I20", "total_count minus the number of results of list_coupons is the sum of the counts in withheld.")
async def _balance(service: ServiceUnderTest) -> None:
    for document in await _lists(service):
        shown, withheld = len(document["results"].values()), sum(_withheld(document))
        total = document["total_count"].whole()
        expected = f"total_count = {shown} results + {withheld} withheld"
        document.response.must(total - shown == withheld, expected, f"total_count = {total}")


@rule("I39", "results has verified_applied and unverified coupons only, and no artefact of a proof.")
async def _only_usable(service: ServiceUnderTest) -> None:
    for coupon in await _coupons(service):
        coupon["verificationStatus"].one_of(*_SHOWN)
        for name in coupon.names():
            coupon[name].must(not _PROOF.search(name), "no artefact of a proof")


@rule("I40", "A verified_rejected coupon is never in results and counts in withheld.verified_rejected.")
async def _rejected(service: ServiceUnderTest) -> None:
    found = 0
    for document in await _lists(service):
        for coupon in document["results"].each():
            status = coupon["verificationStatus"]
            status.must(status.value != _REJECTED, "no rejected coupon in results")
        found += document["withheld"][_REJECTED].whole()
    require(found, "a coupon that a real test has rejected")


@rule("I41", "Expired coupons and those of reserved test domains are withheld, and counted under their reason.")
async def _withheld_reasons(service: ServiceUnderTest) -> None:
    now = datetime.now(UTC)
    found = 0
    for document in await _lists(service):
        for coupon in document["results"].each():
            ends, domain = coupon["validUntil"], coupon["shop"]["domain"]
            ends.must(ends.value is None or ends.time() >= now - _SKEW, "no coupon that has expired")
            domain.must(not _RESERVED.fullmatch(domain.text()), "no coupon of a reserved test domain")
        found += document["withheld"]["expired"].whole() + document["withheld"]["reserved_test_domain"].whole()
    require(found, "a coupon that is withheld as expired or for its domain")


@rule("I56", "list_coupons works with and without a shop.")
async def _with_and_without(service: ServiceUnderTest) -> None:
    everything = (await _all(service)).json()
    for shop_id in require(list(service.subjects.codes)[:_SAMPLE], "a usable coupon"):
        wanted = [coupon.value for coupon in everything["results"].each() if coupon["shop"]["id"].text() == shop_id]
        response = await service.about_shop("list_coupons", shop_id)
        expected = f"the codes of {shop_id} that the list of all shops has ({len(wanted)})"
        response.must(response.json()["results"].values() == wanted, expected)


@rule("I57", "list_coupons answers shop_not_found for an unknown shop and one under review, never an empty list.")
async def _unknown_shop(service: ServiceUnderTest) -> None:
    await expect_absent(service, "list_coupons")


@rule("I8", "A report changes no response, including that of list_coupons.", Need.TOKEN, Need.WRITE)
async def _nothing_changes(service: ServiceUnderTest) -> None:
    about, report = {"shop_domain": _subject(service)["shop_domain"]}, _subject(service)
    calls: list[tuple[str, Arguments]] = [
        *((tool, about) for tool in ("list_coupons", "get_shop", "get_shipping_policy", "get_trust")),
        *((tool, {}) for tool in ("list_categories", "list_coupons")),
        ("find_shop", {"query": ""}),
        ("resolve_conflict", {"from_shop_id": about["shop_domain"]}),
    ]
    before = [await service.fresh.tool(tool, arguments) for tool, arguments in calls]
    await _report(service, "report_code", {**report, "reason": "invalid"})
    await _report(service, "report_issue", {"subject_type": "shop", **about, "reason": "info_outdated"})
    for (tool, arguments), response in zip(calls, before, strict=True):
        after = await service.fresh.tool(tool, arguments)
        expect_equal(response, after, f"the same response of {tool} before and after a report")


@rule("I36", "A report has its reason from a fixed list, and no free text.", Need.TOKEN, Need.WRITE)
async def _no_free_text(service: ServiceUnderTest) -> None:
    whole = {**_subject(service), "reason": "invalid"}
    for wrong in ("comment", "reason", "code"):
        await _expect_invalid(service, "report_code", {**whole, wrong: "it did not work"})


@rule(
    "I37",
    "A report queues a re-check, and the same report again from the same source queues no other.",
    Need.TOKEN,
    Need.OPS_KEY,
    Need.WRITE,
)
async def _repeats(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    for attempt in range(_ATTEMPTS):
        code = f"CHECK-{secrets.token_hex(6)}"
        depths = [await _depth(service)]
        for _ in range(2):
            await _report(service, "report_code", {"shop_domain": shop.id, "code": code, "reason": "invalid"})
            depths.append(await _depth(service))
        before, once, twice = (depth.whole() for depth in depths)
        if once == before + 1 and twice == once:
            return
        # Other callers report too, and workers take re-checks away: only the last attempt is judged.
        if attempt == _ATTEMPTS - 1:
            raise depths[-1].broken(f"{before + 1} after a new report, and no more after the same one again")


@rule("I61", "report_code needs shop_domain, code and one of its four reasons.", Need.TOKEN, Need.WRITE)
async def _report_code(service: ServiceUnderTest) -> None:
    whole = {**_subject(service), "reason": "invalid"}
    await _expect_required(service, "report_code", whole)
    await _expect_invalid(service, "report_code", {**whole, "reason": "unreachable"})
    for reason in _CODE_REASONS:
        await service.fresh.read("report_code", {**whole, "reason": reason})
    unknown = {**whole, "shop_domain": service.unknown_id}
    (await service.fresh.tool("report_code", unknown)).problem(404, "shop_not_found")


@rule("I62", "The response to a report is the fixed status text, never a verdict.", Need.TOKEN, Need.WRITE)
async def _status_text(service: ServiceUnderTest) -> None:
    report = _subject(service)
    issue = {"subject_type": "fact", "shop_domain": report["shop_domain"], "reason": "shipping_cost"}
    # Twice: a repeated report has the same response.
    for _ in range(2):
        await _report(service, "report_code", {**report, "reason": "mismatch"})
        await _report(service, "report_issue", issue)


@rule("I63", "report_issue needs subject_type, shop_domain and a reason of that subject type.", Need.TOKEN, Need.WRITE)
async def _report_issue(service: ServiceUnderTest) -> None:
    whole = {"subject_type": "shop", "shop_domain": service.shop_id, "reason": "unreachable"}
    await _expect_required(service, "report_issue", whole)
    for subject, other in (("shop", "fact"), ("fact", "shop")):
        for reason in _ISSUE_REASONS[subject]:
            await service.fresh.read("report_issue", {**whole, "subject_type": subject, "reason": reason})
        crossed = {**whole, "subject_type": other, "reason": _ISSUE_REASONS[subject][0]}
        await _expect_invalid(service, "report_issue", crossed)


async def _all(service: ServiceUnderTest) -> Response:
    """The list of all shops, unless it is longer than the service returns or than a run reads (NothingToSeeError)."""
    try:
        response = await service.all_coupons()
    except TooLongError:
        raise NothingToSeeError("a shorter list of all coupons") from None
    if response.status != 200 and response.problem(400)["code"].value == "too_many_coupons":  # noqa: PLR2004 - of HTTP
        raise NothingToSeeError("a list of all coupons within the service's own bound")
    response.json()
    return response


def _withheld(document: Part) -> tuple[int, ...]:
    return tuple(document["withheld"][reason].whole() for reason in _REASONS)


async def _report(service: ServiceUnderTest, tool: str, arguments: Arguments) -> None:
    response = await service.fresh.tool(tool, arguments)
    response.json()["status"].expect(_STATUS)
    response.must(response.json().names() == ["status"], "the status and nothing else")


async def _expect_required(service: ServiceUnderTest, tool: str, whole: dict[str, str]) -> None:
    for omitted in whole:
        await _expect_invalid(service, tool, {name: value for name, value in whole.items() if name != omitted})


async def _expect_invalid(service: ServiceUnderTest, tool: str, arguments: Arguments) -> None:
    (await service.fresh.tool(tool, arguments)).problem(400, "invalid_input")


async def _depth(service: ServiceUnderTest) -> Part:
    """The number of queued re-checks by the operations state."""
    state = (await service.fresh.get("/api/ops/state", *service.ops_key_header)).json()
    depth = state["consumers"]["rechecks"]["depth"]
    require(depth.value is not None, "an operations state with the depth of the re-check queue")
    return depth


def _subject(service: ServiceUnderTest) -> dict[str, str]:
    """A shop and one of its codes; where no shop has a code, an invented code."""
    known = list(service.subjects.codes.items()) or [(service.shop_id, "CHECK")]
    return dict(zip(("shop_domain", "code"), known[0], strict=True))
