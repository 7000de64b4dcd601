"""Addresses: every view can be linked to, and the browser's history goes through them."""

import pytest
from playwright.async_api import expect

from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, suggested, typed

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize(
    "shop", ["shop_books", "harbour-lane-books.internal", "https://www.Harbour-Lane-Books.internal/sale"]
)
async def test_a_link_leads_to_a_shop_by_its_id_or_any_form_of_its_domain(
    site: Site, visitor: Visitor, shop: str
) -> None:
    page, _ = await visitor.visit(site.base, f"/?shop={shop}")

    main = await shown(page, "shop")

    await expect(main.get_by_role("heading", name="Harbour Lane Books")).to_be_visible()
    assert "Harbour Lane Books" in await page.title()


async def test_a_link_keeps_query_category_and_country(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=books&q=harbour&country=DE")
    main = await shown(page, "results")

    await expect(page.locator("#search")).to_have_value("harbour")
    await expect(page.locator("#country")).to_have_value("DE")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")
    await expect(main).to_contain_text("Books")
    assert "harbour" in await page.title()


async def test_a_link_leads_into_the_middle_of_a_category(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=paper&offset=100")
    main = await shown(page, "category")

    await expect(page.locator("[data-shop]")).to_have_count(20)
    await expect(main).to_contain_text("Paper")
    await expect(main).to_contain_text("120")


async def test_back_and_forward_go_through_the_views(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    titles = [await page.title()]
    await page.locator("#view").get_by_text("Paper", exact=True).first.click()
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


async def test_the_country_is_part_of_the_address(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")

    await page.locator("#country").select_option("FR")
    await expect(await section(page, "shipping", "ok")).to_contain_text("France")

    assert "country=FR" in page.url
    await page.reload()
    await expect(page.locator("#country")).to_have_value("FR")


async def test_results_open_in_a_new_tab_as_links_do(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=moss")
    await shown(page, "results")

    async with page.context.expect_page() as opened:
        await page.locator("[data-shop] a").first.click(modifiers=["Control"])

    await shown(await opened.value, "shop")
    await shown(page, "results")
