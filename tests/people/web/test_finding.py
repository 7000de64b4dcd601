"""Results: paging with the total, words that were ignored, what may have been meant, and an honest "nothing"."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from service.app import create_app
from service.settings.service import Settings
from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import shown, text_of, texts
from tests.support.catalogues import shop
from tests.support.served import served
from tests.support.worlds import embedded_world

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


async def listed(page: Page) -> list[str]:
    found: list[str] = await page.locator("[data-shop]").evaluate_all("all => all.map(one => one.dataset.shop)")
    return found


async def test_pages_begin_at_their_top_follow_each_other_and_together_are_all(site: Site, visitor: Visitor) -> None:
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
        await expect(page.locator("[data-shop]").first).to_be_in_viewport()
        await expect(page.locator("#view h1")).to_be_focused()
        pages.append(await listed(page))

    assert len(pages) > 2
    assert sorted(shop for shops in pages for shop in shops) == [
        f"shop_paper-mill-{at:03}_internal" for at in range(120)
    ]
    await page.locator("#previous").click()
    await expect(page.locator(f"[data-shop={pages[-2][0]}]")).to_have_count(1)
    assert await listed(page) == pages[-2]


async def test_letters_that_match_are_marked_and_words_that_were_ignored_named(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=lane+stationery+zzqqzz")
    await shown(page, "results")

    assert await texts(page.locator("[data-shop] mark")) == ["Lane", "Stationery"]

    await expect(page.locator("#notice")).to_have_text(
        "No shop matches zzqqzz: these are the shops for the other words."
    )
    assert await listed(page) == ["shop_books"]


async def test_what_may_have_been_meant_is_offered(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=hrabour")
    await shown(page, "results")
    meant = page.locator("#did-you-mean")
    await expect(meant).to_contain_text("Harbour Lane Books")

    await meant.get_by_role("link", name="Harbour Lane Books").click()

    await shown(page, "shop")


async def test_where_nothing_is_found_what_is_suggested_leads_on(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=moss+stat")
    main = await shown(page, "results")
    await expect(main).to_contain_text("No shop in the directory fits.")

    await main.get_by_role("link", name="Stationery", exact=True).click()

    await shown(page, "category")
    assert await listed(page) == ["shop_books"]


async def test_nothing_found_is_said_as_that(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=harbour&country=JP")
    main = await shown(page, "results")

    text = (await text_of(main)).lower()
    assert "no shop" in text
    assert "japan" in text
    assert await listed(page) == []
    await expect(page.locator("#retry")).to_have_count(0)


async def test_a_page_beyond_the_last_says_where_the_results_are(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=paper&offset=5000")
    main = await shown(page, "category")

    assert await listed(page) == []
    await expect(main).to_contain_text("120")
    await expect(page.locator("#previous")).to_have_count(1)


@pytest.mark.rule("I15")
async def test_the_start_lists_the_categories_of_public_shops_with_their_numbers(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    main = await shown(page, "start")

    for name, count in (("Paper", "120"), ("Books", "2"), ("سوق", "1")):
        await expect(main.locator("a, li").filter(has_text=name).first).to_contain_text(count)
    await expect(main).not_to_contain_text("Secrets")
    await main.get_by_text("Books", exact=True).first.click()
    await shown(page, "category")
    assert await listed(page) == ["shop_books", "shop_japanese"]


async def test_a_word_of_too_many_categories_is_said_to_show_a_part(tmp_path: Path, visitor: Visitor) -> None:
    shops = [shop(f"Maker {number}", categories=[(f"craft-{number}", f"Craft {number}")]) for number in range(60)]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        page, _ = await visitor.visit(base, "/?q=craft")
        await shown(page, "results")

        await expect(page.locator("#notice")).to_contain_text("only a part of the shops is shown")
        assert await page.locator("[data-shop]").count() > 0
        assert await visitor.leave() == []


async def test_the_numbers_of_the_filters_are_those_that_a_click_shows(tmp_path: Path, visitor: Visitor) -> None:
    shops = [
        shop("Maple One", categories=["toys", "books"], countries=["DE", "FR"]),
        shop("Maple Two", categories=["toys"], countries=["FR"]),
        shop("Maple Three", categories=["books"], countries=["WORLDWIDE"]),
        shop("Maple Four", categories=["toys"], countries=[]),
    ]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        for path in ("/?q=maple", "/?q=maple&country=DE", "/?q=maple&category=toys"):
            page, _ = await visitor.visit(base, path)
            await shown(page, "results")
            links: list[tuple[str, str]] = await page.locator("[data-filter]").evaluate_all(
                "all => all.map(one => [one.href, one.querySelector('.aside').textContent.trim()])"
            )
            counted = []
            for address, _number in links:
                await page.goto(address)
                await shown(page, "results")
                counted.append(str(len(await listed(page))))

            assert len(links) >= 2
            assert counted == [number for _, number in links]
        assert await visitor.leave() == []


async def test_a_filter_of_all_shops_shows_the_number_of_the_whole_category_and_is_set_and_removed(
    site: Site, visitor: Visitor
) -> None:
    page, _ = await visitor.visit(site.base, "/?q=")
    await shown(page, "results")
    await expect(page.locator("[data-filter=paper]")).to_have_text("Paper 120")

    await page.locator("[data-filter=books]").click()
    await page.wait_for_url("**/?category=books")
    await shown(page, "category")
    assert await listed(page) == ["shop_books", "shop_japanese"]
    await page.locator("[data-filter=FR]").click()
    await page.wait_for_url("**/?category=books&country=FR")
    await expect(page.locator("#country")).to_have_value("FR")

    await page.get_by_role("link", name="Remove the filter Books").click()
    await page.wait_for_url("**/?q=&country=FR")
    await page.get_by_role("link", name="Remove the filter France").click()
    await page.wait_for_url("**/?q=")


async def test_of_more_shops_than_one_answer_holds_no_number_is_shown(tmp_path: Path, visitor: Visitor) -> None:
    kinds = [("toys", ["DE"]), ("books", ["FR", "AT"])]
    shops = [shop(f"Maple {at}", categories=[kinds[at % 2][0]], countries=kinds[at % 2][1]) for at in range(101)]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        page, _ = await visitor.visit(base, "/?q=maple")
        await shown(page, "results")

        filters = page.locator("[data-filter]")
        assert sorted(await filters.all_inner_texts()) == ["Austria", "Books", "France", "Germany", "Toys"]
        await page.locator("[data-filter=books]").click()
        await expect(page.locator("h1")).to_have_text("Shops for “maple” in Books")
        # Of one category there are 50, which one answer holds.
        assert sorted(await texts(filters)) == ["Austria 50", "France 50", "Toys"]
        assert await visitor.leave() == []
