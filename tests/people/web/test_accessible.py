"""Accessible to everyone: axe finds nothing in any view, light and dark; all fits on phones; motion can be reduced."""

import asyncio
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final

import pytest
from playwright.async_api import Page, Route, expect

from service.web.languages import LANGUAGES, languages
from tests.people.web.browser import DESKTOP, PHONE, Screen, Visitor
from tests.people.web.conftest import Serve, Site
from tests.people.web.steps import section, shown, sign_in, suggested, typed
from tests.support.catalogues import shop

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

AXE: Final = files("axe_playwright_python") / "axe.min.js"
# Goes to an address within the page.
GO: Final = "(address) => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')); }"
# Finds a view by its address; the suggestions and the trust section come apart, as a user has to type for them.
VIEWS: Final = (
    ("/", "start"),
    ("/?q=mill&offset=20", "results"),
    ("/?q=harbour zzqq", "results"),
    ("/?q=hrabour", "results"),
    ("/?q=&country=DE&country=FR&ships_to=FR&include_unsettled=true", "results"),
    ("/?category=souq", "category"),
    ("/?shop=shop_bare", "shop"),
    ("/?shop=nowhere.internal", "error"),
    ("/?q=mill&country=QQ", "error"),
)
NARROW: Final = Screen(width=320, height=700, touch=True)
# Every colour once in light and once in dark; the languages other than English are seen on a light phone.
SCREENS: Final = {"desktop-light": DESKTOP, "phone-dark": replace(NARROW, dark=True)}
# Links in running text are exempt, as WCAG 2.2 has it; everything else is measured.
SMALL_TARGETS: Final = """() => [...document.querySelectorAll("a, button, input, select, summary, [role=option]")]
    .filter((one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
    .filter((one) => !(one.tagName === "A" && getComputedStyle(one).display === "inline"
        && one.parentElement.textContent.trim() !== one.textContent.trim()))
    .map((one) => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
    .filter(([, box]) => box.bottom > 0 && box.right > 0 && (box.width < 24 || box.height < 24))
    .map(([html, box]) => `${html}: ${Math.round(box.width)} x ${Math.round(box.height)}`)"""


async def axe_violations(page: Page, *, colours: bool = True) -> list[str]:
    # By the debugger's way in, so that the page's own policy stays as it is.
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(f"{AXE.read_text(encoding='utf-8')}; 1")
    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": colours}}}
    found: dict[str, Any] = await page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{rule['id']} at {node['target']}: {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


async def assert_usable(page: Page, screen: Screen, *, colours: bool = True) -> None:
    """Nothing that axe finds; on a phone, nothing to scroll sideways, and nothing too small to be met by a finger."""
    assert (page.url, await axe_violations(page, colours=colours)) == (page.url, [])
    if screen.touch:
        assert await page.evaluate("document.documentElement.scrollWidth") <= screen.width
        assert (page.url, await page.evaluate(SMALL_TARGETS)) == (page.url, [])


@pytest.mark.parametrize(
    ("tag", "screen"),
    [*(("en", screen) for screen in SCREENS.values()), *((tag, NARROW) for tag in LANGUAGES[1:])],
    ids=[*SCREENS, *LANGUAGES[1:]],
)
async def test_every_view_is_accessible_and_fits(site: Site, visitor: Visitor, tag: str, screen: Screen) -> None:
    page, _ = await visitor.visit(site.base, f"/?lang={tag}", screen, announced=(400, 404))
    # The page in English is loaded for each view. In other languages its script shows them all, in the same colours.
    is_loaded = tag == LANGUAGES[0]

    async def assert_shown(path: str, view: str) -> None:
        await (page.goto(f"{site.base}{path}") if is_loaded else page.evaluate(GO, path))
        await shown(page, view)
        await assert_usable(page, screen, colours=is_loaded)

    for path, view in VIEWS:
        await assert_shown(path, view)
    await assert_shown("/?shop=shop_books", "shop")
    await page.locator("#view > .report summary").click()
    await assert_usable(page, screen, colours=is_loaded)
    await sign_in(page, site.token)
    await assert_shown("/?shop=shop_books&country=DE", "shop")
    await section(page, "trust", "ok")
    await page.locator("#view > .report summary").click()
    await page.get_by_label(languages()[tag].text("copy_code", code="WORKED-10")).click()
    await page.locator("#corner").click()
    await assert_usable(page, screen, colours=is_loaded)

    await assert_shown("/", "start")
    await typed(page, "books")
    await suggested(page, "Harbour Lane Books", "森の本屋さん", "Books")
    await page.locator("#search").press("ArrowDown")
    await assert_usable(page, screen, colours=is_loaded)


async def test_axe_would_find_what_is_wrong(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    await page.evaluate(
        "document.getElementById('search').removeAttribute('aria-controls');"
        "document.querySelector('label[for=country]').remove();"
        "document.querySelector('.lead').style.color = 'rgb(200 200 200)'"
    )

    found = {fault.split(" at ")[0] for fault in await axe_violations(page)}

    assert found >= {"color-contrast", "select-name"}


@pytest.mark.parametrize(("still", "moving"), [(False, 1), (True, 0)])
async def test_reduced_motion_is_respected(site: Site, visitor: Visitor, moving: int, *, still: bool) -> None:
    page, _ = await visitor.arrive(site.base, Screen(still=still))
    held = asyncio.Event()

    async def keep(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.goto(site.base)
    await shown(page, "start")
    await page.route("**/tool/find_shop", keep)
    await page.locator("[data-slug=paper]").click()
    await expect(page.locator(".bones")).to_be_visible()

    assert await page.evaluate("document.getAnimations().length") == moving
    assert await page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    held.set()
    await shown(page, "category")
    assert await page.evaluate("document.getAnimations().length") == 0


async def test_nothing_moves_while_the_page_comes(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    await page.add_init_script(
        """window.moved = 0; new PerformanceObserver((list) => {
            for (const shift of list.getEntries()) window.moved += shift.value;
        }).observe({ type: "layout-shift", buffered: true })"""
    )
    for path, view in (("/", "start"), ("/?q=mill", "results"), ("/?shop=shop_books&country=DE", "shop")):
        await page.goto(f"{site.base}{path}")
        await shown(page, view)

        # What Web Vitals call good ends at 0.1.
        assert await page.evaluate("window.moved") < 0.1


async def test_the_page_has_one_heading_of_each_view_and_its_landmarks(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")

    await expect(page.locator("h1")).to_have_count(1)
    for landmark in ("banner", "main", "contentinfo", "search"):
        await expect(page.get_by_role(landmark)).to_have_count(1)
    await expect(page.locator("html")).to_have_attribute("lang", "en")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    await expect(skip).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#view")).to_be_focused()


async def test_suggestions_are_met_by_a_finger(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/", PHONE)
    await page.locator("#search").tap()
    await typed(page, "books")
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


async def test_the_start_shows_the_largest_categories_and_the_rest_on_request(serve: Serve, visitor: Visitor) -> None:
    shops = [shop(f"Maple {at}", categories=[f"craft-{at}"]) for at in range(20)]
    page, _ = await visitor.visit(serve(shops), "/", PHONE)
    main = await shown(page, "start")
    tiles = main.locator("[data-slug]:visible")
    await expect(tiles).to_have_count(16)

    await main.get_by_role("button", name="All 20 categories").click()

    await expect(tiles).to_have_count(20)
    await expect(tiles.nth(16)).to_be_focused()
