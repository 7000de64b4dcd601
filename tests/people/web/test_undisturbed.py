"""The page does what is asked for and leaves alone what the user does meanwhile: text, focus, scroll position."""

import asyncio

import pytest
from playwright.async_api import Route, expect

from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in, suggested, typed

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

FOCUSED = "document.activeElement.id || document.activeElement.tagName"


async def test_choosing_a_country_keeps_what_is_typed_and_where_one_is(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")

    await page.locator("#country").focus()
    await page.locator("#country").select_option("DE")
    await page.wait_for_url("**/?country=DE")
    await shown(page, "start")

    assert await page.evaluate(FOCUSED) == "country"
    await expect(page.locator("#search")).to_have_value("harb")


async def test_a_view_that_comes_late_takes_the_focus_from_no_user_who_types(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    come = asyncio.Event()

    async def wait(route: Route) -> None:
        await come.wait()
        await route.continue_()

    await page.route("**/tool/find_shop", wait)
    await page.get_by_role("link", name="Paper").click()
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")
    come.set()
    await shown(page, "category")

    assert await page.evaluate(FOCUSED) == "search"
    await expect(page.locator("#search")).to_have_value("harb")
    await suggested(page, "Harbour Lane Books")


async def test_the_way_back_leads_to_where_one_was(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=paper")
    await shown(page, "category")
    await page.evaluate("scrollTo(0, 700)")
    await page.locator("[data-shop] a").nth(12).click()
    await shown(page, "shop")
    assert await page.evaluate("scrollY") == 0

    await page.go_back()
    await shown(page, "category")

    assert await page.evaluate("scrollY") >= 600


async def test_another_country_asks_for_the_shipping_and_nothing_else(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    asked = len(watch.asked)

    await page.locator("#country").select_option("AT")
    await expect(page.locator("#shipping")).to_contain_text("does not ship to Austria")

    tools = [line.removeprefix(f"POST {site.base}") for line in watch.asked[asked:] if "/tool/" in line]
    assert tools == ["/tool/get_shipping_policy"]
    assert page.url == f"{site.base}/?shop=shop_books&country=AT"


async def test_text_that_can_be_no_token_is_said_and_is_not_used(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await sign_in(page, site.token)
    await section(page, "trust", "ok")

    await sign_in(page, "schlüssel")

    await expect(page.locator("#status")).to_contain_text("can’t be a token")
    await section(page, "trust", "missing")
    assert len(watch.asked_for("/tool/get_trust")) == 1


async def test_a_shop_that_is_opened_again_is_asked_for_again(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")
    await page.locator("#search").press("ArrowDown")
    await page.locator("#search").press("Enter")

    await expect(page.locator("#search")).to_have_value("")
    await shown(page, "shop")
    assert len(watch.asked_for("/tool/get_shop")) == 2
