"""Reports: what they need, the one answer that they get, and that nothing delivered changes by them.

They write, so they are asked only with --write. All are about one shop, and of one source they count once a day.
"""

import secrets
from typing import Any, Final

from shop_directory.conformance.exchange import Part, Reply
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import Visit, expect_equal

STATUS: Final = "wird gemeldet, Pruefung laeuft"
_ATTEMPTS: Final = 3
_CODE_REASONS: Final = ("invalid", "mismatch", "item_restricted", "min_order_missing")
_ISSUE_REASONS: Final = {
    "shop": ("unreachable", "no_longer_exists", "info_outdated", "wrong_category", "wrong_name_or_domain"),
    "fact": ("shipping_cost", "return_period", "payment_methods", "evidence_broken"),
}


@rule("I8", "A report changes no answer, none of list_coupons either.", Need.TOKEN, Need.WRITE)
async def _nothing_changes(visit: Visit) -> None:
    shop_id, code = _subject(visit)
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("list_coupons", {"shop_domain": shop_id}),
        ("get_shop", {"shop_domain": shop_id}),
        ("get_shipping_policy", {"shop_domain": shop_id}),
    )
    before = [await visit.tool(tool, arguments, fresh=True) for tool, arguments in asked]
    await _report(visit, "report_code", {"shop_domain": shop_id, "code": code, "reason": "invalid"})
    await _report(visit, "report_issue", {"subject_type": "shop", "shop_domain": shop_id, "reason": "info_outdated"})
    for (tool, arguments), reply in zip(asked, before, strict=True):
        after = await visit.tool(tool, arguments, fresh=True)
        expect_equal(reply, after, f"the same answer of {tool} after a report as before it")


@rule("I36", "A report has its reason from a fixed list, and no free text.", Need.TOKEN, Need.WRITE)
async def _no_free_text(visit: Visit) -> None:
    shop_id, code = _subject(visit)
    whole = {"shop_domain": shop_id, "code": code, "reason": "invalid"}
    for wrong in ({"comment": "it did not work"}, {"reason": "it did not work"}, {"code": "it did not work"}):
        (await visit.tool("report_code", {**whole, **wrong}, fresh=True)).problem(400, "invalid_input")


@rule(
    "I37",
    "A report queues a re-check, and the same report again from the same source queues no other.",
    Need.TOKEN,
    Need.OPS_KEY,
    Need.WRITE,
)
async def _repeats(visit: Visit) -> None:
    shop = visit.seen.shop()
    for attempt in range(_ATTEMPTS):
        code = f"CHECK-{secrets.token_hex(6)}"
        depths = [await _depth(visit)]
        for _ in range(2):
            await _report(visit, "report_code", {"shop_domain": shop.id, "code": code, "reason": "invalid"})
            depths.append(await _depth(visit))
        before, once, twice = (depth.whole() for depth in depths)
        if once == before + 1 and twice == once:
            return
        # Others report too, and workers take re-checks away: it is broken when it never comes out.
        if attempt == _ATTEMPTS - 1:
            raise depths[-1].broken(f"{before + 1} after a new report, and no more after the same one again")


@rule("I61", "report_code needs shop_domain, code and one of its four reasons.", Need.TOKEN, Need.WRITE)
async def _report_code(visit: Visit) -> None:
    shop_id, code = _subject(visit)
    whole = {"shop_domain": shop_id, "code": code, "reason": "invalid"}
    await _expect_needed(visit, "report_code", whole)
    (await visit.tool("report_code", {**whole, "reason": "unreachable"}, fresh=True)).problem(400, "invalid_input")
    for reason in _CODE_REASONS:
        (await visit.tool("report_code", {**whole, "reason": reason}, fresh=True)).answer()
    unknown = {**whole, "shop_domain": visit.unknown_id}
    (await visit.tool("report_code", unknown, fresh=True)).problem(404, "shop_not_found")


@rule("I62", "A report is answered with the fixed status text, never with a verdict.", Need.TOKEN, Need.WRITE)
async def _status_text(visit: Visit) -> None:
    shop_id, code = _subject(visit)
    # Twice: a repeat is answered like the first.
    for _ in range(2):
        await _report(visit, "report_code", {"shop_domain": shop_id, "code": code, "reason": "mismatch"})
        await _report(
            visit, "report_issue", {"subject_type": "fact", "shop_domain": shop_id, "reason": "shipping_cost"}
        )


@rule("I63", "report_issue needs subject_type, shop_domain and a reason of that subject type.", Need.TOKEN, Need.WRITE)
async def _report_issue(visit: Visit) -> None:
    shop = visit.seen.shop()
    whole = {"subject_type": "shop", "shop_domain": shop.id, "reason": "unreachable"}
    await _expect_needed(visit, "report_issue", whole)
    for subject, other in (("shop", "fact"), ("fact", "shop")):
        for reason in _ISSUE_REASONS[subject]:
            issue = {**whole, "subject_type": subject, "reason": reason}
            (await visit.tool("report_issue", issue, fresh=True)).answer()
        crossed = {**whole, "subject_type": other, "reason": _ISSUE_REASONS[subject][0]}
        (await visit.tool("report_issue", crossed, fresh=True)).problem(400, "invalid_input")


async def _report(visit: Visit, tool: str, arguments: dict[str, str]) -> Reply:
    reply = await visit.tool(tool, arguments, fresh=True)
    reply.answer()["status"].expect(STATUS)
    for name in reply.answer().keys():  # noqa: SIM118 - a part is no dict
        if name != "status":
            raise reply.broken("the status and nothing else")
    return reply


async def _expect_needed(visit: Visit, tool: str, whole: dict[str, str]) -> None:
    for left_out in whole:
        arguments = {name: value for name, value in whole.items() if name != left_out}
        (await visit.tool(tool, arguments, fresh=True)).problem(400, "invalid_input")


async def _depth(visit: Visit) -> Part:
    """How many re-checks wait, as the operations' state tells."""
    state = (await visit.get("/api/ops/state", *visit.ops_key_header, fresh=True)).answer()
    rechecks = state["consumers"]["rechecks"]
    if rechecks["depth"].is_null:
        raise NothingToSeeError("a queue of re-checks whose depth the operations' state tells")
    return rechecks["depth"]


def _subject(visit: Visit) -> tuple[str, str]:
    """A shop and a code of it; where no shop has one, a made-up code of any shop."""
    if visit.seen.codes:
        return visit.seen.coupon_shops[0], visit.seen.codes[0]
    return visit.seen.shop().id, "CHECK"
