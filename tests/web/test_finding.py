"""Results: paging with the total, words that were ignored, what may have been meant, and an honest "nothing"."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from service.app import create_app
from service.settings import Settings
from tests.catalogues import shop
from tests.e2e.served import served
from tests.web.browser import Visitor
from tests.web.conftest import Site
from tests.web.steps import shown, text_of
from tests.worlds import embedded_world

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


async def listed(page: Page) -> list[str]:
    """The ids of the shops on the page."""
    found: list[str] = await page.locator("[data-shop]").evaluate_all("all => all.map(one => one.dataset.shop)")
    return found


async def test_pages_follow_each_other_and_together_are_all(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=paper+mill")
    main = await shown(page, "results")
    await expect(main).to_contain_text("120")
    await expect(page.locator("#previous")).to_have_count(0)
    pages = [await listed(page)]

    while await page.locator("#next").count():
        first = pages[-1][0]
        await page.locator("#next").click()
        await expect(page.locator(f"[data-shop={first}]")).to_have_count(0)
        await shown(page, "results")
        pages.append(await listed(page))

    assert len(pages) > 2
    assert sorted(shop for shops in pages for shop in shops) == [
        f"shop_paper-mill-{at:03}_internal" for at in range(120)
    ]
    await page.locator("#previous").click()
    await expect(page.locator(f"[data-shop={pages[-2][0]}]")).to_have_count(1)
    assert await listed(page) == pages[-2]


async def test_the_next_page_begins_at_its_top(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=paper")
    await shown(page, "category")
    first = (await listed(page))[0]

    await page.locator("#next").click()
    await expect(page.locator(f"[data-shop={first}]")).to_have_count(0)

    await expect(page.locator("[data-shop]").first).to_be_in_viewport()
    await expect(page.locator("#view h1")).to_be_focused()


async def test_words_that_were_ignored_are_named(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=harbour+zzqqzz")
    await shown(page, "results")

    await expect(page.locator("#notice")).to_contain_text("zzqqzz")
    assert await listed(page) == ["shop_books"]


async def test_what_may_have_been_meant_is_offered(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=hrabour")
    await shown(page, "results")
    meant = page.locator("#did-you-mean")
    await expect(meant).to_contain_text("Harbour Lane Books")

    await meant.get_by_role("link", name="Harbour Lane Books").click()

    await shown(page, "shop")


async def test_nothing_found_is_said_as_that(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=harbour&country=JP")
    main = await shown(page, "results")

    told = (await text_of(main)).lower()
    assert "no shop" in told
    assert "japan" in told
    assert await listed(page) == []
    await expect(page.locator("#retry")).to_have_count(0)


async def test_a_page_beyond_the_last_says_where_the_results_are(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=paper&offset=5000")
    main = await shown(page, "category")

    assert await listed(page) == []
    await expect(main).to_contain_text("120")
    await expect(page.locator("#previous")).to_have_count(1)


async def test_the_start_lists_the_categories_with_their_numbers(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    main = await shown(page, "start")

    for name, count in (("Paper", "120"), ("Books", "2"), ("سوق", "1")):
        await expect(main.locator("a, li").filter(has_text=name).first).to_contain_text(count)
    await main.get_by_text("Books", exact=True).first.click()
    await shown(page, "category")
    assert await listed(page) == ["shop_books", "shop_japanese"]


async def test_a_category_is_narrowed_by_words_and_country(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=books&q=harbour&country=DE")
    main = await shown(page, "results")

    assert await listed(page) == ["shop_books"]
    await expect(main).to_contain_text("Books")


async def test_a_word_of_too_many_categories_is_said_to_show_a_part(tmp_path: Path, visitor: Visitor) -> None:
    shops = [shop(f"Maker {number}", categories=[(f"craft-{number}", f"Craft {number}")]) for number in range(60)]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        page, _ = await visitor.visit(base, "/?q=craft")
        await shown(page, "results")

        await expect(page.locator("#notice")).to_contain_text("a part of what fits")
        assert await page.locator("[data-shop]").count() > 0
        assert await visitor.leave() == []
