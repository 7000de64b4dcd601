"""Reports: shown with a token only, sent by one click with a fixed reason, and never answered by a verdict."""

import json

import pytest
from playwright.async_api import expect

from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


async def test_without_a_token_nothing_can_be_reported(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    reports = page.locator(".report")
    await expect(reports).to_have_count(4)
    assert [await reports.nth(at).is_visible() for at in range(4)] == [False] * 4

    await sign_in(page, site.token)
    await expect(reports.first).to_be_visible()
    await sign_in(page, "")
    await expect(reports.first).to_be_hidden()


async def test_a_code_is_reported_by_one_click(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    await section(page, "coupons", "ok")
    await sign_in(page, site.token)

    code = page.locator(".coupon").filter(has_text="WORKED-10")
    await code.get_by_text("Report").click()
    async with page.expect_request("**/tool/report_code") as asked:
        await code.get_by_role("button", name="It was refused").click()

    assert json.loads((await asked.value).post_data or "") == {
        "shop_domain": "shop_books", "code": "WORKED-10", "reason": "invalid",
    }  # fmt: skip
    await expect(code).to_contain_text("Reported. It will be checked again.")
    await expect(code.get_by_role("button", name="It was refused")).to_be_disabled()


async def test_wrong_facts_of_a_shop_are_reported_by_their_subject(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    await sign_in(page, site.token)

    await page.get_by_text("Report something wrong").click()
    async with page.expect_request("**/tool/report_issue") as asked:
        await page.get_by_role("button", name="Wrong shipping cost").click()

    assert json.loads((await asked.value).post_data or "") == {
        "shop_domain": "shop_books", "subject_type": "fact", "reason": "shipping_cost",
    }  # fmt: skip
    await expect(page.locator("#status")).to_have_text("Reported. It will be checked again.")


async def test_a_report_that_is_not_taken_is_not_thanked_for(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books", announced=(401,))
    await section(page, "coupons", "ok")
    await sign_in(page, "sd_wrong")

    code = page.locator(".coupon").filter(has_text="WORKED-10")
    await code.get_by_text("Report").click()
    await code.get_by_role("button", name="It was refused").click()

    await expect(code).to_contain_text("This API token is invalid")
    await expect(code).not_to_contain_text("Reported")
