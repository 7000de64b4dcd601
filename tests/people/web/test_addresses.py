"""Addresses of views, through which the browser's history goes; and names in every script, shown as text."""

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.people.web.browser import PHONE, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in, suggested, typed
from tests.people.web.world import ARABIC, HEBREW, LONG, MARKUP, SCRIPT

pytestmark = [pytest.mark.asyncio(loop_scope="session")]
# An isolate with the direction that its first strong letter asks for.
DIRECTION = (
    "one => { const own = one.closest('bdi, [dir=auto]');"
    " return own && [getComputedStyle(own).direction, getComputedStyle(own).unicodeBidi] }"
)
# Where each character of a text stands on the screen.
POSITIONS = """(one) => {
    const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
    const text = walker.nextNode();
    return [...text.data].map((_, at) => {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        return range.getBoundingClientRect().left;
    });
}"""


async def test_a_link_keeps_query_category_country_and_page(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=books&q=harbour&country=DE")
    main = await shown(page, "results")

    await expect(page.locator("#search")).to_have_value("harbour")
    await expect(page.locator("#country")).to_have_value("DE")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")
    await expect(main).to_contain_text("Books")
    assert "harbour" in await page.title()

    await page.goto(f"{site.base}/?category=paper&offset=100")
    main = await shown(page, "category")
    await expect(page.locator("[data-shop]")).to_have_count(20)
    await expect(main).to_contain_text("Paper")
    await expect(main).to_contain_text("120")


async def test_back_and_forward_go_through_the_views(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    titles = [await page.title()]
    await page.locator("[data-slug=paper]").click()
    await shown(page, "category")
    titles.append(await page.title())
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")
    await page.locator("#suggestions [data-key]").click()
    await shown(page, "shop")
    titles.append(await page.title())
    assert len(set(titles)) == 3

    await page.go_back()
    await shown(page, "category")
    assert await page.title() == titles[1]
    assert page.url == f"{site.base}/?category=paper"
    await page.go_back()
    await shown(page, "start")
    assert await page.title() == titles[0]
    await page.go_forward()
    await page.go_forward()
    main = await shown(page, "shop")
    await expect(main).to_contain_text("harbour-lane-books.internal")
    assert await page.title() == titles[2]


async def test_the_country_is_the_first_question_and_remembered(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base)
    await shown(page, "start")
    await page.get_by_label("Where do you live?").select_option("FR")
    await page.wait_for_url("**/?country=FR")

    await page.goto(f"{site.base}/")
    await shown(page, "start")
    await expect(page.locator("#country")).to_have_value("FR")
    await page.goto(f"{site.base}/?shop=shop_books")
    await expect(await section(page, "shipping", "ok")).to_contain_text("it ships to France")
    await expect((await section(page, "coupons", "ok")).locator("code").last).to_have_text("WORKED-10")
    await page.goto(f"{site.base}/?q=harbour")
    await shown(page, "results")
    assert page.url == f"{site.base}/?q=harbour&country=FR"
    # The brand leads to the start of this country; an address that names one counts.
    await page.locator(".brand").click()
    await page.wait_for_url("**/?country=FR")
    await page.goto(f"{site.base}/?q=harbour&country=DE")
    await shown(page, "results")
    await expect(page.locator("#country")).to_have_value("DE")

    await page.locator("#country").select_option("")
    await page.wait_for_url("**/?q=harbour")
    await shown(page, "results")
    watch.asked.clear()
    await page.goto(f"{site.base}/?shop=shop_books")
    await expect(await section(page, "shipping", "ok")).to_contain_text("Choose a country above")
    assert page.url == f"{site.base}/?shop=shop_books"
    # The server's answers were enough.
    assert watch.asked_for("/tool/get_shop_policies") == []


async def test_a_stored_country_that_does_not_exist_counts_as_none(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    await page.evaluate("localStorage.setItem('shop-directory.country', 'QQ')")

    await page.goto(f"{site.base}/?q=harbour")
    await shown(page, "results")

    assert page.url == f"{site.base}/?q=harbour"
    await expect(page.locator("#country")).to_have_value("")


async def test_results_open_in_a_new_tab_as_links_do(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=moss")
    await shown(page, "results")

    async with page.context.expect_page() as opened:
        await page.locator("[data-shop] a").first.click(modifiers=["Control"])

    await shown(await opened.value, "shop")
    await shown(page, "results")


async def innermost(scope: Locator, text: str) -> Locator:
    return scope.get_by_text(text, exact=True).last


async def is_nowhere_markup(page: Page) -> None:
    assert await page.locator("img[src='x'], script:not([src], [type$=json]), [onerror], #view b").count() == 0
    assert await page.title() != "broken"


@pytest.mark.parametrize(("shop", "name"), [("shop_arabic", ARABIC), ("shop_hebrew", HEBREW)])
async def test_a_name_from_right_to_left_runs_from_right_to_left(
    site: Site, visitor: Visitor, shop: str, name: str
) -> None:
    page, _ = await visitor.visit(site.base, f"/?shop={shop}")
    main = await shown(page, "shop")

    heading = await innermost(main, name)
    assert await heading.evaluate(DIRECTION) == ["rtl", "isolate"]
    positions = await heading.evaluate(POSITIONS)
    assert positions[0] > positions[1] > positions[2]
    assert await page.locator("html").evaluate("one => getComputedStyle(one).direction") == "ltr"


async def test_what_stands_next_to_such_a_name_does_not_move(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await typed(page, "rimona")
    await suggested(page, HEBREW)

    option = page.locator("#suggestions [data-key]")
    name = await (await innermost(option, HEBREW)).bounding_box()
    domain = await (await innermost(option, "rimona.internal")).bounding_box()
    assert await (await innermost(option, HEBREW)).evaluate(DIRECTION) == ["rtl", "isolate"]
    assert name is not None
    assert domain is not None
    assert name["x"] + name["width"] <= domain["x"] or name["y"] + name["height"] <= domain["y"] + 1


async def test_what_is_typed_runs_in_its_own_direction(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    search = page.locator("#search")

    await typed(page, ARABIC[:4])
    await suggested(page, ARABIC)
    assert await search.evaluate("one => getComputedStyle(one).direction") == "rtl"

    await search.fill("harb")
    assert await search.evaluate("one => getComputedStyle(one).direction") == "ltr"


async def test_markup_stays_text_wherever_it_stands(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await typed(page, "markup")
    await expect(page.locator("#suggestions [data-key=shop_markup]")).to_contain_text(MARKUP)
    await is_nowhere_markup(page)

    await sign_in(page, site.token)
    await page.goto(f"{site.base}/?shop=shop_markup")
    main = await shown(page, "shop")
    await expect(main.get_by_role("heading", name=MARKUP)).to_be_visible()
    await expect(main).to_contain_text(SCRIPT)
    await expect(await section(page, "offers", "ok")).to_contain_text(MARKUP)
    coupons = await section(page, "coupons", "ok")
    await expect(coupons).to_contain_text("%3Cscript%3E&lt")
    await expect(coupons).to_contain_text(SCRIPT)
    trust = await section(page, "trust", "ok")
    await expect(trust).to_contain_text(MARKUP)
    await expect(trust).to_contain_text(SCRIPT)
    await is_nowhere_markup(page)

    await page.goto(f"{site.base}/?category=markup")
    await shown(page, "category")
    await expect(page.locator("[data-shop=shop_markup]")).to_contain_text(MARKUP)
    await is_nowhere_markup(page)


async def test_markup_in_an_address_stays_text(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20zzqqzz")
    main = await shown(page, "results")
    await expect(page.locator("#search")).to_have_value("<img src=x onerror=alert(1)> zzqqzz")
    await expect(main).to_be_visible()
    await is_nowhere_markup(page)

    other, _ = await visitor.visit(site.base, "/?shop=%3Cscript%3Ealert(1)%3C/script%3E", announced=(404, 400))
    await shown(other, "error")
    await is_nowhere_markup(other)


async def test_a_very_long_name_breaks_no_line_and_is_cut_after_three(site: Site, visitor: Visitor) -> None:
    for path, view in (("/?q=unbreakable", "results"), ("/?shop=shop_long", "shop")):
        page, _ = await visitor.visit(site.base, path, PHONE)
        main = await shown(page, view)

        await expect(main).to_contain_text(LONG)
        name = main.get_by_title(LONG, exact=True).first
        lines = await name.evaluate("one => one.offsetHeight / parseFloat(getComputedStyle(one).lineHeight)")
        assert 2.9 < lines < 3.1
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE.width


async def test_signs_that_turn_the_direction_reach_no_neighbour(site: Site, visitor: Visitor) -> None:
    """The indexer lets no such sign in; a service that is fed by another one might."""
    page, _ = await visitor.arrive(site.base)

    async def turned(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(
            response=answer, body=(await answer.text()).replace("Moss & Fern", "Moss \u202e\u2067 Fern")
        )

    await page.route("**/suggest?*", turned)
    await page.goto(site.base)
    await typed(page, "moss")

    option = page.locator("#suggestions [data-key]")
    domain = option.get_by_text("moss-and-fern.internal", exact=True).last
    positions = await domain.evaluate(POSITIONS)
    assert positions == sorted(positions)
