"""Reports: required fields, the one response, and that a report changes no other response.

These rules write, so they are checked with --write only. All reports are about one shop.
"""

import secrets
from typing import Any, Final

from shop_directory.conformance.exchange import Part, Response
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import ServiceUnderTest, expect_equal

STATUS: Final = "wird gemeldet, Pruefung laeuft"
_ATTEMPTS: Final = 3
_CODE_REASONS: Final = ("invalid", "mismatch", "item_restricted", "min_order_missing")
_ISSUE_REASONS: Final = {
    "shop": ("unreachable", "no_longer_exists", "info_outdated", "wrong_category", "wrong_name_or_domain"),
    "fact": ("shipping_cost", "return_period", "payment_methods", "evidence_broken"),
}


@rule("I8", "A report changes no response, including that of list_coupons.", Need.TOKEN, Need.WRITE)
async def _nothing_changes(service: ServiceUnderTest) -> None:
    shop_id, code = _subject(service)
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("list_coupons", {"shop_domain": shop_id}),
        ("get_shop", {"shop_domain": shop_id}),
        ("get_shipping_policy", {"shop_domain": shop_id}),
    )
    before = [await service.tool(tool, arguments, fresh=True) for tool, arguments in calls]
    await _report(service, "report_code", {"shop_domain": shop_id, "code": code, "reason": "invalid"})
    await _report(service, "report_issue", {"subject_type": "shop", "shop_domain": shop_id, "reason": "info_outdated"})
    for (tool, arguments), response in zip(calls, before, strict=True):
        after = await service.tool(tool, arguments, fresh=True)
        expect_equal(response, after, f"the same response of {tool} before and after a report")


@rule("I36", "A report has its reason from a fixed list, and no free text.", Need.TOKEN, Need.WRITE)
async def _no_free_text(service: ServiceUnderTest) -> None:
    shop_id, code = _subject(service)
    whole = {"shop_domain": shop_id, "code": code, "reason": "invalid"}
    for wrong in ({"comment": "it did not work"}, {"reason": "it did not work"}, {"code": "it did not work"}):
        (await service.tool("report_code", {**whole, **wrong}, fresh=True)).problem(400, "invalid_input")


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
    shop_id, code = _subject(service)
    whole = {"shop_domain": shop_id, "code": code, "reason": "invalid"}
    await _expect_required(service, "report_code", whole)
    (await service.tool("report_code", {**whole, "reason": "unreachable"}, fresh=True)).problem(400, "invalid_input")
    for reason in _CODE_REASONS:
        (await service.tool("report_code", {**whole, "reason": reason}, fresh=True)).json()
    unknown = {**whole, "shop_domain": service.unknown_id}
    (await service.tool("report_code", unknown, fresh=True)).problem(404, "shop_not_found")


@rule("I62", "The response to a report is the fixed status text, never a verdict.", Need.TOKEN, Need.WRITE)
async def _status_text(service: ServiceUnderTest) -> None:
    shop_id, code = _subject(service)
    # Twice: a repeated report has the same response.
    for _ in range(2):
        await _report(service, "report_code", {"shop_domain": shop_id, "code": code, "reason": "mismatch"})
        await _report(
            service, "report_issue", {"subject_type": "fact", "shop_domain": shop_id, "reason": "shipping_cost"}
        )


@rule("I63", "report_issue needs subject_type, shop_domain and a reason of that subject type.", Need.TOKEN, Need.WRITE)
async def _report_issue(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    whole = {"subject_type": "shop", "shop_domain": shop.id, "reason": "unreachable"}
    await _expect_required(service, "report_issue", whole)
    for subject, other in (("shop", "fact"), ("fact", "shop")):
        for reason in _ISSUE_REASONS[subject]:
            issue = {**whole, "subject_type": subject, "reason": reason}
            (await service.tool("report_issue", issue, fresh=True)).json()
        crossed = {**whole, "subject_type": other, "reason": _ISSUE_REASONS[subject][0]}
        (await service.tool("report_issue", crossed, fresh=True)).problem(400, "invalid_input")


async def _report(service: ServiceUnderTest, tool: str, arguments: dict[str, str]) -> Response:
    response = await service.tool(tool, arguments, fresh=True)
    response.json()["status"].expect(STATUS)
    for name in response.json().keys():  # noqa: SIM118 - a part is no dict
        if name != "status":
            raise response.broken("the status and nothing else")
    return response


async def _expect_required(service: ServiceUnderTest, tool: str, whole: dict[str, str]) -> None:
    for omitted in whole:
        arguments = {name: value for name, value in whole.items() if name != omitted}
        (await service.tool(tool, arguments, fresh=True)).problem(400, "invalid_input")


async def _depth(service: ServiceUnderTest) -> Part:
    """The number of queued re-checks by the operations state."""
    state = (await service.get("/api/ops/state", *service.ops_key_header, fresh=True)).json()
    rechecks = state["consumers"]["rechecks"]
    if rechecks["depth"].is_null:
        raise NothingToSeeError("an operations state with the depth of the re-check queue")
    return rechecks["depth"]


def _subject(service: ServiceUnderTest) -> tuple[str, str]:
    """A shop and one of its codes; where no shop has a code, an invented code."""
    if service.subjects.codes:
        return service.subjects.coupon_shops[0], service.subjects.codes[0]
    return service.subjects.shop().id, "CHECK"
