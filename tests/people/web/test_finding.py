"""Results: paging with the total, words that were ignored, what may have been meant, and an honest "nothing"."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.people.web.browser import Visitor
from tests.people.web.conftest import Serve, Site
from tests.people.web.steps import shown, text_of, texts
from tests.support.catalogues import shop
from tests.support.sample import SampleService

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


async def test_words_that_match_are_marked_and_words_that_were_ignored_named(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=lane+stationery+zzqqzz")
    await shown(page, "results")

    assert await texts(page.locator("[data-shop] mark")) == ["Lane", "Stationery"]

    await expect(page.locator("#notice")).to_have_text(
        "No shop matches zzqqzz: these are the shops for the other words."
    )
    assert await listed(page) == ["shop_books"]


async def test_where_nothing_is_found_what_is_suggested_leads_on(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=moss+stat")
    main = await shown(page, "results")
    await expect(main.locator("h1")).to_have_text("Closest to “moss stat”")
    await expect(main.locator(".lead")).to_have_text("No shop fits all of these words. These shops fit some of them.")
    broader = main.locator(".broader")
    assert await texts(broader.locator("h2")) == ["stat (1 shop)", "moss (1 shop)"]
    assert await texts(broader.locator("p")) == ["without moss", "without stat"]

    await main.get_by_role("link", name="Stationery", exact=True).click()

    await shown(page, "category")
    assert await listed(page) == ["shop_books"]


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

    for slug, text in (("paper", "Paper 120 shops"), ("books", "Books 2 shops"), ("souq", "س سوق 1 shop")):
        assert await texts(main.locator(f"[data-slug={slug}]")) == [text]
    await expect(main).not_to_contain_text("Secrets")
    await main.locator("[data-slug=books]").click()
    await shown(page, "category")
    assert await listed(page) == ["shop_books", "shop_japanese"]


async def test_the_start_is_one_screen_whose_examples_all_find_shops(sample: SampleService, visitor: Visitor) -> None:
    page, _ = await visitor.visit(sample.base)
    main = await shown(page, "start")
    tiles, shops = main.locator("[data-slug]:visible"), main.locator("[data-shop]")
    await expect(tiles).to_have_count(16)
    icons = await tiles.evaluate_all(
        "all => all.map(one => one.firstChild.querySelector('path')?.outerHTML ?? one.firstChild.textContent)"
    )
    assert len(set(icons)) == 16
    await expect(shops).to_have_count(8)
    await expect(shops.last).to_be_in_viewport(ratio=1)

    examples = main.locator(".example")
    await expect(examples).to_have_count(3)
    assert [
        text for text in await texts(examples) if not re.fullmatch(r"\w+( \w+)?", text) or text != text.lower()
    ] == []
    for text in await texts(examples):
        await page.goto(sample.base)
        await examples.get_by_text(text, exact=True).click()
        await shown(page, "results")
        await expect(page.locator("#search")).to_have_value(text)
        assert await listed(page) != []
        await expect(page.locator("#notice")).to_have_count(0)


async def test_a_synonym_marks_the_category_and_not_a_part_of_a_word(serve: Serve, visitor: Visitor) -> None:
    shops = [
        shop("Bike Bits", categories=["gifts", "bicycles"]),
        shop("Oak Wheels", categories=["bicycles", "gifts"]),
        shop("Bilberry", categories=["toys", "bicycles"]),
    ]
    named = [{"slug": "bicycles", "synonyms": ["bike"]}]
    page, _ = await visitor.visit(serve(shops, named), "/?q=bike")
    await shown(page, "results")

    rows = page.locator("[data-shop]")
    found = {await text_of(row.locator("a")): await texts(row.locator("mark")) for row in await rows.all()}
    assert found == {"Bike Bits": ["Bike"], "Oak Wheels": ["Bicycles"], "Bilberry": ["Bicycles"]}


async def test_a_long_filter_is_searched_and_finds_what_it_does_not_list(serve: Serve, visitor: Visitor) -> None:
    shops = [shop(f"Maple {at}", categories=[(f"craft-{at}", f"Craft {at:02}")]) for at in range(60)]
    page, _ = await visitor.visit(serve(shops), "/?q=maple")
    await shown(page, "results")
    category = page.get_by_role("group", name="Category")
    await expect(category.locator("li")).to_have_count(6)
    await expect(category).to_contain_text("10 more not listed.")

    listed_last = await texts(category.locator("li"))
    await category.get_by_role("searchbox", name="Find a category").fill("craft 5")
    found = await texts(category.locator("li"))
    assert [text[:8] for text in sorted(found)] == [f"Craft {at}" for at in range(50, 60)]
    assert {text.endswith(" 1") for text in found} == {True, False}  # those that are not listed have no number

    await category.get_by_role("searchbox").fill("")
    assert await texts(category.locator("li")) == listed_last
    await category.get_by_role("button", name="Show 44 more").click()
    await expect(category.locator("li")).to_have_count(50)
    await expect(category.get_by_role("checkbox").nth(6)).to_be_focused()
    await category.get_by_role("searchbox").fill("59")
    await category.get_by_role("checkbox", name="Craft 59").check()
    await page.wait_for_url("**/?q=maple&category=craft-59")
    await expect(page.locator("[data-shop]")).to_have_count(1)


async def test_a_word_of_too_many_categories_is_said_to_show_a_part(serve: Serve, visitor: Visitor) -> None:
    shops = [shop(f"Maker {number}", categories=[(f"craft-{number}", f"Craft {number}")]) for number in range(60)]
    page, _ = await visitor.visit(serve(shops), "/?q=craft")
    await shown(page, "results")

    await expect(page.locator("#notice")).to_contain_text("only a part of the shops is shown")
    assert await page.locator("[data-shop]").count() > 0


async def test_the_numbers_of_the_filters_are_those_of_all_pages_without_the_own_filter(
    serve: Serve, visitor: Visitor
) -> None:
    kinds = [("toys", ["DE"]), ("books", ["FR", "AT"]), ("books", []), ("art", ["WORLDWIDE"])]
    shops = [shop(f"Maple {at}", categories=[kinds[at % 4][0]], countries=kinds[at % 4][1]) for at in range(104)]
    page, _ = await visitor.visit(serve(shops), "/?q=maple")
    await shown(page, "results")
    category, country = page.get_by_role("group", name="Category"), page.get_by_role("group", name="Sells in")
    assert await texts(category.locator("li")) == ["Books 52", "Art 26", "Toys 26"]
    assert await texts(country.locator("li")) == ["Austria 26", "Germany 26", "France 26"]
    await expect(country).to_contain_text("Always with 26 that sell worldwide and 26 that do not say.")

    await category.get_by_role("checkbox", name="Toys").check()
    await expect(page.locator("h1")).to_have_text("Shops for “maple” in Toys")
    assert await texts(category.locator("li")) == ["Toys 26", "Books 52", "Art 26"]
    assert await texts(country.locator("li")) == []


async def test_filters_combine_in_the_address_by_keyboard_and_keep_the_focus(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=")
    await shown(page, "results")
    books, paper = page.get_by_role("checkbox", name="Books"), page.get_by_role("checkbox", name="Paper")
    await books.focus()
    await page.keyboard.press("Space")
    await page.wait_for_url("**/?category=books")
    await shown(page, "category")
    assert await listed(page) == ["shop_books", "shop_japanese"]
    await expect(books).to_be_focused()

    await paper.press("Space")
    await page.wait_for_url("**/?category=books&category=paper")
    await expect(page.locator("h1")).to_have_text("Books or Paper")
    await expect(page.locator("#view")).to_contain_text("122 shops")
    await expect(paper).to_be_focused()
    await page.get_by_role("checkbox", name="France").check()
    await page.get_by_role("checkbox", name="Germany").check()
    await page.wait_for_url("**/?category=books&category=paper&country=FR&country=DE")
    await expect(page.locator("#country option:checked")).to_have_text("Several")

    for label in ("Paper", "France", "Books", "Germany"):
        await page.get_by_role("checkbox", name=label).uncheck()
    await page.wait_for_url("**/?q=")
    await page.go_back()
    await page.wait_for_url("**/?q=&country=DE")
    await expect(page.get_by_role("checkbox", name="Germany")).to_be_checked()


async def test_a_destination_keeps_shops_that_ship_there_and_counts_those_that_do_not_say(
    site: Site, visitor: Visitor
) -> None:
    page, _ = await visitor.visit(site.base, "/?q=")
    await shown(page, "results")
    await page.get_by_label("Ships to").select_option("FR")
    await page.wait_for_url("**/?q=&ships_to=FR")
    await expect(page.locator("#view")).to_contain_text("1 shop shipping to France")
    assert await listed(page) == ["shop_books"]
    await expect(page.locator("[data-shop]")).to_contain_text("Ships to France")

    await page.get_by_role("checkbox", name="Also those that do not say").check()
    await page.wait_for_url("**/?q=&ships_to=FR&include_unsettled=true")
    await expect(page.locator("[data-shop]")).to_have_count(20)
    assert (await listed(page))[0] == "shop_books"
    await expect(page.locator("[data-shop]").filter(has_text="Ships to France")).to_have_count(1)
    await expect(page.locator("#view")).not_to_contain_text("no offers listed")
    marks = await texts(page.locator("[data-shop]").filter(has_text="shipping to France not stated"))
    assert len(marks) == 19

    await page.goto(f"{site.base}/?q=harbour&ships_to=AT")
    await expect(page.locator("#view")).to_contain_text("No shop fits among those shipping to Austria.")
    await page.get_by_role("link", name="Look without filters").click()
    await page.wait_for_url("**/?q=harbour")
    assert await listed(page) == ["shop_books"]


async def test_shops_with_a_code_are_those_whose_codes_are_listed(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=")
    await shown(page, "results")
    await page.get_by_role("checkbox", name="Has a code now").check()
    await page.wait_for_url("**/?q=&has_code=true")
    await expect(page.locator("[data-shop]")).to_have_count(2)
    assert sorted(await listed(page)) == ["shop_books", "shop_markup"]
