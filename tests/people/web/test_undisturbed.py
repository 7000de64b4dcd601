"""The page leaves alone what the user does, and whatever may go wrong unseen in a visit is seen."""

import asyncio
import json
import math

import pytest
from playwright.async_api import Browser, Route, expect

from bench.page import as_markdown, measured
from tests.people.web.browser import CUT, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in, suggested, typed

FOCUSED = "document.activeElement.id || document.activeElement.tagName"


@pytest.mark.asyncio(loop_scope="session")
async def test_choosing_a_country_keeps_what_is_typed_and_where_one_is(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")

    await page.locator("#country").focus()
    async with page.expect_request("**/tool/find_shop") as asked:
        await page.locator("#country").select_option("DE")
    await page.wait_for_url("**/?country=DE")
    assert json.loads((await asked.value).post_data or "")["countries"] == ["DE"]
    await shown(page, "results")

    assert await page.evaluate(FOCUSED) == "country"
    await expect(page.locator("#search")).to_have_value("harb")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_view_that_comes_late_takes_the_focus_from_no_user_who_types(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    come = asyncio.Event()

    async def wait(route: Route) -> None:
        await come.wait()
        await route.continue_()

    await page.route("**/tool/find_shop", wait)
    await page.locator("[data-slug=paper]").click()
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")
    come.set()
    # Of what was typed, not of the category.
    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")

    assert await page.evaluate(FOCUSED) == "search"
    await expect(page.locator("#search")).to_have_value("harb")
    await suggested(page, "Harbour Lane Books")


@pytest.mark.asyncio(loop_scope="session")
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


@pytest.mark.asyncio(loop_scope="session")
async def test_another_country_asks_for_the_shipping_and_nothing_else(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    asked = len(watch.asked)

    await page.locator("#country").select_option("AT")
    await expect(page.locator("#shipping")).to_contain_text("does not ship to Austria")

    tools = [line.removeprefix(f"POST {site.base}") for line in watch.asked[asked:] if "/tool/" in line]
    assert tools == ["/tool/get_shop_policies"]
    assert page.url == f"{site.base}/?shop=shop_books&country=AT"


@pytest.mark.asyncio(loop_scope="session")
async def test_text_that_can_be_no_token_is_said_and_is_not_used(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await sign_in(page, site.token)
    await section(page, "trust", "ok")

    asked = len(watch.asked_for("/tool/get_trust"))
    await sign_in(page, "schlüssel", refused="can’t be a token")

    await section(page, "trust", "missing")
    assert len(watch.asked_for("/tool/get_trust")) == asked


@pytest.mark.asyncio(loop_scope="session")
async def test_a_shop_that_is_opened_again_is_asked_for_again(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")
    await page.locator("#search").press("ArrowDown")
    await page.locator("#search").press("Enter")

    await expect(page.locator("#suggestions")).to_be_hidden()
    await expect(page.locator("#search")).to_have_value("")
    await shown(page, "shop")
    # The first time, the page carried what the server had answered.
    assert len(watch.asked_for("/tool/get_shop")) == 1


QUIET = "<!doctype html><link rel=icon href='data:,'><p>Quiet"
STRICT = {"content-security-policy": "default-src 'none'; img-src data:; script-src 'self'"}


async def left(browser: Browser, site: Site, document: str, announced: tuple[int, ...] = ()) -> list[str]:
    """What is wrong after a visit to a page of our own instead of the service's."""
    visitor = Visitor(browser)
    page, _ = await visitor.arrive(site.base, announced=announced)
    await page.route("**/made-up", lambda route: route.fulfill(body=document, content_type="text/html", headers=STRICT))
    await page.goto(f"{site.base}/made-up")
    await page.evaluate("setTimeout(() => { if (document.scripts.length) throw new Error('lost') }); 1")
    await page.wait_for_timeout(100)
    return await visitor.leave()


@pytest.mark.asyncio(loop_scope="session")
async def test_what_goes_wrong_in_a_page_is_reported_unless_it_was_announced(browser: Browser, site: Site) -> None:
    assert await left(browser, site, QUIET) == []
    refused = await left(browser, site, f"{QUIET}<script>1</script>")
    assert any(wrong.startswith("console error: ") and "script-src" in wrong for wrong in refused)
    assert any(wrong.startswith("exception: ") and "lost" in wrong for wrong in refused)
    absent = f"{QUIET}<script src='/nowhere.js'></script>"
    assert f"status 404: {site.base}/nowhere.js" in await left(browser, site, absent)
    # Without the address, whose port may contain the number.
    assert not any("404" in wrong.replace(site.base, "") for wrong in await left(browser, site, absent, (404,)))


@pytest.mark.asyncio(loop_scope="session")
async def test_a_request_to_another_server_is_reported(browser: Browser, site: Site) -> None:
    visitor = Visitor(browser)
    page, _ = await visitor.arrive(site.base, announced=(CUT,))
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        await page.goto("http://another.invalid/")
    assert "asked another server: http://another.invalid/" in await visitor.leave()


@pytest.mark.asyncio(loop_scope="session")
async def test_paints_and_keystrokes_are_measured(browser: Browser, site: Site) -> None:
    figures = await measured(browser, site.base, ["harb", "moss qq"], loads=2, pause_ms=0)

    assert len(figures.paints) == 2
    assert all(0 < paint < 60_000 for paint in figures.paints)
    assert figures.keystrokes == len("harb") + len("moss qq")
    assert 0 < figures.answered.median <= figures.seen.median
    assert figures.answered.median <= figures.found.median <= figures.found_seen.median
    for spread in (figures.answered, figures.seen, figures.held, figures.found, figures.found_seen):
        assert 0 <= spread.median <= spread.p95 < math.inf
    lines = as_markdown(120, figures).splitlines()
    assert lines[0].startswith("120 shops; largest contentful paint of 2 cold loads: best ")
    assert len(lines) == 9
