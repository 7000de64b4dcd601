"""Failures: each in a sentence of its own with another try, and none of them ever looks like "there is nothing"."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page, Route, expect

from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from tests.people.web.browser import CUT, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in, suggested, text_of, typed
from tests.people.web.world import web_world
from tests.support.served import served

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

NOT_KNOWN: Final = "This does not mean that there is nothing."
UNANSWERABLE: Final = "can’t answer this question as it was asked"

LIES: Final = re.compile(
    r"\b(no (shop|result|match|code|offer|suggestion)|nothing to suggest|0 (shops|codes))", re.IGNORECASE
)


async def nothing_looks_empty(page: Page) -> None:
    """No word of the page says that there is nothing."""
    assert LIES.findall(await page.locator("body").inner_text()) == []


async def test_a_service_without_its_index_says_so_and_another_try_works(tmp_path: Path, visitor: Visitor) -> None:
    with served(create_app(Settings(data_dir=tmp_path / "world" / "index"))) as base:
        page, _ = await visitor.visit(base, "/?q=harbour", announced=(503,))
        main = await shown(page, "error")
        await expect(main).to_contain_text("This directory has no index yet.")
        await expect(main).to_contain_text(NOT_KNOWN)
        await nothing_looks_empty(page)

        web_world(tmp_path / "world")
        retry = page.locator("#retry")
        await expect(retry).to_be_enabled()
        await expect(retry).to_have_text("Try again")
        await retry.click()

        await shown(page, "results")
        await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")
        assert await visitor.leave() == []


async def test_a_connection_that_is_gone_is_said_and_another_key_or_try_works(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, announced=(CUT,))
    await shown(page, "start")

    await page.context.set_offline(True)
    await page.locator("#search").press_sequentially("har")
    await expect(page.locator(".finder")).to_contain_text("can’t be reached")
    await expect(page.locator("#suggestions")).to_be_hidden()
    await nothing_looks_empty(page)

    await page.context.set_offline(False)
    await typed(page, "b")
    await suggested(page, "Harbour Lane Books")
    await expect(page.locator(".finder")).not_to_contain_text("can’t be reached")

    await page.context.set_offline(True)
    await page.locator("#search").fill("harbour")
    await page.locator("#search").press("Enter")
    main = await shown(page, "error")
    await expect(main).to_contain_text("can’t be reached")
    await nothing_looks_empty(page)

    await page.context.set_offline(False)
    await page.locator("#retry").click()
    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")


async def test_a_used_up_quota_is_said_with_the_time_to_wait_and_nothing_is_asked_again_immediately(
    tmp_path: Path, visitor: Visitor
) -> None:
    quotas = QuotaClass(reads=2, suggest=2, reports=0)
    settings = Settings(data_dir=web_world(tmp_path / "world"), quota_anonymous=quotas)
    with served(create_app(settings)) as frugal:
        page, watch = await visitor.visit(frugal, "/?q=harbour", announced=(429,))
        await shown(page, "results")
        await page.locator("#search").fill("")
        for key in "moss":
            await page.locator("#search").press_sequentially(key)
            await page.wait_for_timeout(100)
        await expect(page.locator(".finder")).to_contain_text("Too many questions")
        await nothing_looks_empty(page)
        asked = len(watch.asked_for("/suggest"))
        await page.locator("#search").press_sequentially(" and fern")
        await page.wait_for_timeout(200)
        assert len(watch.asked_for("/suggest")) == asked

        for word in ("moss", "mill"):
            await page.locator("#search").fill(word)
            await page.locator("#search").press("Enter")
        main = await shown(page, "error")
        await expect(main).to_contain_text("Too many questions")
        await expect(page.locator("#retry")).to_be_disabled()
        await expect(page.locator("#retry")).to_contain_text("second")
        await nothing_looks_empty(page)
        assert await visitor.leave() == []


async def test_another_try_is_offered_once_the_time_is_over(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base, announced=(503,))
    refusals = [True]

    async def refuse_once(route: Route) -> None:
        if not refusals:
            await route.continue_()
            return
        refusals.clear()
        problem = {"type": "urn:x", "title": "x", "status": 503, "detail": "x", "code": "overloaded"}
        await route.fulfill(
            status=503,
            body=json.dumps(problem),
            headers={"retry-after": "1", "content-type": "application/problem+json"},
        )

    await page.route("**/tool/get_shop", refuse_once)
    await page.goto(f"{site.base}/?shop=shop_books")
    await shown(page, "error")
    retry = page.locator("#retry")
    await expect(retry).to_be_disabled()
    await expect(retry).to_be_enabled()
    await retry.click()

    await shown(page, "shop")


@pytest.mark.parametrize(
    ("tool", "name"), [("list_coupons", "coupons"), ("get_shipping_policy", "shipping"), ("get_trust", "trust")]
)
async def test_one_part_that_fails_leaves_the_others_standing(
    site: Site, visitor: Visitor, tool: str, name: str
) -> None:
    page, _ = await visitor.arrive(site.base, announced=(CUT,))
    await page.add_init_script(f"sessionStorage.setItem('token', {json.dumps(site.token)})")
    await page.route(f"**/tool/{tool}", lambda route: route.abort("connectionreset"), times=1)
    await page.goto(site.base)
    await sign_in(page, site.token)
    await page.goto(f"{site.base}/?shop=shop_books")

    failed = await section(page, name, "error")
    await expect(failed).to_contain_text("can’t be reached")
    for other in {"offers", "coupons", "shipping", "trust"} - {name}:
        await section(page, other, "ok")

    await failed.get_by_role("button", name="Try again").click()
    await section(page, name, "ok")


async def test_an_answer_that_is_no_answer_is_a_failure(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    await page.route("**/tool/find_shop", lambda route: route.fulfill(status=200, body="<h1>Portal</h1>"))
    await page.goto(f"{site.base}/?q=harbour")

    main = await shown(page, "error")

    assert "could not be read" in await text_of(main)
    await nothing_looks_empty(page)


async def test_a_question_that_cannot_be_answered_is_said_to_be_one(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base, announced=(400,))
    for question, heading, said in (
        ("q=harbour&country=QQ", "No answer", UNANSWERABLE),
        ("q=mill&offset=x", "No answer", UNANSWERABLE),
        ("q=mill&offset=100000", "No answer", UNANSWERABLE),
        ("category=secrets", "Not in the directory", "There is no such category."),
    ):
        await page.goto(f"{site.base}/?{question}")

        main = await shown(page, "error")

        await expect(main.locator("h1")).to_have_text(heading)
        await expect(main).to_contain_text(said)
        await expect(page.locator("#retry")).to_have_count(0)
        await nothing_looks_empty(page)
