"""On a phone: nothing to scroll sideways, and everything that is touched is large enough to be met."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from service.app import create_app
from service.settings.service import Settings
from tests.people.web.browser import PHONE, Screen, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import shown, suggested, typed
from tests.support.catalogues import shop
from tests.support.served import served
from tests.support.worlds import embedded_world

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

VIEWS = (
    ("/", "start"),
    ("/?q=mill", "results"),
    ("/?q=harbour zzqq", "results"),
    ("/?category=books", "category"),
    ("/?shop=shop_books&country=DE", "shop"),
    ("/?shop=nowhere.internal", "error"),
)
# Links in running text are exempt, as WCAG 2.2 has it; everything else is measured.
SMALL_TARGETS = """() => [...document.querySelectorAll("a, button, input, select, summary, [role=option]")]
    .filter((one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
    .filter((one) => !(one.tagName === "A" && getComputedStyle(one).display === "inline"
        && one.parentElement.textContent.trim() !== one.textContent.trim()))
    .map((one) => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
    .filter(([, box]) => box.bottom > 0 && box.right > 0 && (box.width < 24 || box.height < 24))
    .map(([html, box]) => `${html}: ${Math.round(box.width)} x ${Math.round(box.height)}`)"""


async def fits(page: Page, width: int) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await page.evaluate(SMALL_TARGETS) == []


@pytest.mark.parametrize("width", [320, 360])
async def test_every_view_fits(site: Site, visitor: Visitor, width: int) -> None:
    page, _ = await visitor.arrive(site.base, Screen(width=width, height=700, touch=True), announced=(404,))
    for path, view in VIEWS:
        await page.goto(f"{site.base}{path}")
        await shown(page, view)

        await fits(page, width)


async def test_suggestions_fit_and_are_met_by_a_finger(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/", Screen(width=320, height=700, touch=True))
    await page.locator("#search").tap()
    await typed(page, "books")
    await suggested(page, "Harbour Lane Books", "森の本屋さん", "Books")
    await fits(page, 320)

    await page.locator("#suggestions [data-key=shop_books]").tap()

    await shown(page, "shop")


async def test_text_may_be_twice_as_large(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base, Screen(width=640, height=700))
    for path, view in (("/?shop=shop_books", "shop"), ("/?q=mill", "results")):
        await page.goto(f"{site.base}{path}")
        await shown(page, view)
        await page.evaluate("document.documentElement.style.setProperty('font-size', '200%')")

        assert await page.evaluate("document.documentElement.scrollWidth") <= 640
        await expect(page.locator("#search")).to_be_visible()


async def test_the_section_that_needs_a_token_comes_last(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books", PHONE)
    await shown(page, "shop")

    order = await page.locator("section").evaluate_all(
        "all => all.sort((one, other) => one.getBoundingClientRect().top - other.getBoundingClientRect().top)"
        ".map(one => one.id)"
    )

    assert order == ["coupons", "shipping", "offers", "trust"]
    # By keyboard as well: the offers end with a button, and the button for a token follows.
    await page.locator("#offers button").last.focus()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Enter a token")).to_be_focused()


async def test_the_start_shows_a_few_categories_and_the_rest_on_request(tmp_path: Path, visitor: Visitor) -> None:
    shops = [shop(f"Maple {at}", categories=[f"craft-{at}"]) for at in range(12)]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        page, _ = await visitor.visit(base, "/", PHONE)
        main = await shown(page, "start")
        tiles = main.locator(".tiles a:visible")
        await expect(tiles).to_have_count(8)

        await main.get_by_role("button", name="All 12 categories").click()

        await expect(tiles).to_have_count(12)
        await expect(tiles.nth(8)).to_be_focused()
        assert await visitor.leave() == []
