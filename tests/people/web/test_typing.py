"""Typing and the keyboard: what is offered and announced, and the way to a shop and back without a mouse."""

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, Route, expect

from index_mappings.countries import COUNTRY_CODES
from service.limits.policy import QuotaClass
from tests.people.web.browser import DESKTOP, PHONE, Screen, Visitor
from tests.people.web.conftest import Serve, Site
from tests.people.web.steps import hold, searched_for, section, shown, suggested, texts, typed, typed_in
from tests.support.catalogues import shop

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


async def test_categories_and_shops_are_two_groups_with_names(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)

    await typed(page, "books")

    await suggested(page, "Harbour Lane Books", "森の本屋さん", "Books")
    groups = page.locator("#suggestions [role=group]")
    await expect(groups).to_have_count(2)
    kinds = [
        await groups.nth(at).locator("[role=option]").evaluate_all("all => all.map(one => one.dataset.kind)")
        for at in (0, 1)
    ]
    assert kinds == [["shop", "shop"], ["category"]]
    for at in (0, 1):
        named_by = await groups.nth(at).get_attribute("aria-labelledby") or ""
        label = await groups.nth(at).get_attribute("aria-label")
        assert label or await page.locator(f"#{named_by}").inner_text()
    await expect(page.locator("#suggestions [data-kind=category]")).to_have_attribute("data-key", "books")


async def test_categories_stand_before_shops_that_only_a_typo_found(serve: Serve, visitor: Visitor) -> None:
    shops = [shop("Shop Box", categories=["gifts"]), shop("Heel & Sole", categories=["shoes"])]
    page, _ = await visitor.visit(serve(shops))

    await typed(page, "shoe")
    await suggested(page, "Shoes", "Shop Box")
    assert await texts(page.locator("#suggestions [part=group]")) == ["Categories", "Similar names"]

    await page.locator("#search").fill("")
    await typed(page, "sho")
    await suggested(page, "Shop Box", "Shoes")
    assert await texts(page.locator("#suggestions [part=group]")) == ["Shops", "Categories"]


async def test_only_what_was_typed_is_marked_and_nothing_that_matches_in_part(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    option = page.locator("#suggestions [data-key=shop_books]")
    for text, marks in {
        "harb": ["Harb"],
        "lane har": ["Har", "Lane"],
        "harbourla": ["Harbour", "La"],
        "arbour": ["arbour"],
        "hrabour": [],
        "harbuor": [],
    }.items():
        await page.locator("#search").fill("")
        await typed(page, text)

        await expect(option).to_contain_text("Harbour Lane Books")
        assert (text, await option.locator("mark").all_inner_texts()) == (text, marks)


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_suggestion_has_all_that_tells_shops_apart_and_the_width_of_the_search(
    site: Site, visitor: Visitor, screen: Screen
) -> None:
    page, _ = await visitor.visit(site.base, "/", screen)
    await typed(page, "harb")

    option = page.locator("#suggestions [data-key=shop_books]")
    assert await texts(option.locator(":scope > *")) == [
        "H",
        "Harbour Lane Books",
        "harbour-lane-books.internal",
        "Books",
    ]
    assert await page.evaluate(
        "['suggestions', 'find'].map((id) => Math.round(document.getElementById(id).getBoundingClientRect().width))"
        ".every((width, at, all) => width === all[0])"
    )


async def test_a_click_opens_a_shop_lists_a_category_and_leads_to_all_results(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)

    await typed(page, "books")
    await page.locator("#suggestions [data-key=shop_books]").click()
    await shown(page, "shop")
    await expect(page.locator("#view h1, #view h2").first).to_have_text("Harbour Lane Books")

    await page.locator("#search").fill("")
    await typed(page, "books")
    await page.locator("#suggestions [data-key=books]").click()
    await shown(page, "category")
    assert await page.locator("[data-shop]").evaluate_all("all => all.map(one => one.dataset.shop)") == [
        "shop_books",
        "shop_japanese",
    ]

    await page.goto(site.base)
    await typed(page, "mill")
    last = page.locator("#suggestions [role=option]").last
    await expect(last).to_have_text("All results for “mill”")
    await last.click()
    await shown(page, "results")
    assert page.url == f"{site.base}/?q=mill"


async def test_the_number_of_suggestions_is_announced_politely(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    status = page.locator("#status")
    await expect(status).to_have_attribute("role", "status")

    await typed(page, "harb")
    await expect(status).to_contain_text("1 shop ")

    await page.locator("#search").fill("")
    await typed(page, "qqxxqq")
    await suggested(page)
    await expect(status).to_have_text("Nothing to suggest.")
    # No list opens, so the sentence is shown as well.
    await expect(status).to_have_class("shown")


async def test_a_country_narrows_what_is_offered_and_found(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base)

    await page.locator("#country").select_option("JP")
    await typed(page, "harb")
    await suggested(page)
    await page.locator("#country").select_option("FR")
    await page.locator("#search").fill("")
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")

    assert [parse_qs(urlsplit(address).query)["country"] for address in watch.asked_for("/suggest")][-1] == ["FR"]


async def test_every_country_of_the_interface_can_be_chosen_by_its_name(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")

    options = page.locator("#country option")
    values = await options.evaluate_all("all => all.map(one => one.value)")
    names = await options.evaluate_all("all => all.map(one => one.textContent)")

    assert (values[0], sorted(values[1:])) == ("", sorted(COUNTRY_CODES))
    assert dict(zip(values, names, strict=True))["DE"] == "Germany"


async def test_fast_typing_asks_for_the_first_key_and_the_end_rather_than_for_each(
    site: Site, visitor: Visitor
) -> None:
    page, watch = await visitor.visit(site.base)
    await shown(page, "start")

    async with page.expect_response(lambda response: typed_in(response.url) == "harbour lane"):
        await page.locator("#search").press_sequentially("harbour lane", delay=10)
    await suggested(page, "Harbour Lane Books")

    asked = [typed_in(address) for address in watch.asked_for("/suggest")]
    assert asked[0] == "h"
    assert asked[-1] == "harbour lane"
    assert len(asked) < len("harbour lane")


async def test_a_late_answer_never_replaces_a_newer_one(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    # Giving up is no more than a favour to the network: an answer may have come in when it is tried.
    await page.add_init_script("AbortController.prototype.abort = () => {}")
    asked, release = await hold(page, "m")
    await page.goto(site.base)

    await page.locator("#search").press("m")
    await asyncio.wait_for(asked.wait(), 5)
    await typed(page, "oss")
    await suggested(page, "Moss & Fern")
    assert len((await (await release()).json())["shops"]) > 1
    await suggested(page, "Moss & Fern")


@pytest.mark.parametrize("enter", [True, False], ids=["Enter", "typing"])
async def test_late_results_never_replace_newer_ones(site: Site, visitor: Visitor, *, enter: bool) -> None:
    page, _ = await visitor.arrive(site.base)
    await page.add_init_script("AbortController.prototype.abort = () => {}")
    asked, release = await hold(page, "mill", results=True)
    await page.goto(f"{site.base}/?q=mill" if enter else site.base)
    if enter:
        await page.locator(".brand").click()
        await shown(page, "start")
        await page.go_back()
    else:
        await page.locator("#search").fill("mill")
    await asyncio.wait_for(asked.wait(), 5)
    await expect(page.locator("#view")).to_have_attribute("aria-busy", "true")
    await page.locator("#search").fill("moss")
    if enter:
        await page.locator("#search").press("Enter")
    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_bare")

    await release()

    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_bare")


async def test_the_results_follow_what_is_typed_and_enter_gives_them_an_address(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base)
    await shown(page, "start")
    title = await page.title()
    asked, _ = await hold(page, "mi", results=True)
    await typed(page, "mi")
    await asyncio.wait_for(asked.wait(), 5)
    async with page.expect_event("requestfailed", lambda request: searched_for(request) == "mi"):  # as it is outdated
        await typed(page, "ll")

    await shown(page, "results")
    await expect(page.locator("#view h1")).to_have_text("Shops for “mill”")
    await expect(page.locator("#view")).to_contain_text("1 to 20 of 120 shops")
    await suggested(page, *["Paper Mill"] * 6)
    assert (page.url, await page.title(), await page.evaluate(FOCUSED)) == (f"{site.base}/", title, "search")
    found = len(watch.asked_for("/tool/find_shop"))

    await page.locator("#search").press("Enter")

    await page.wait_for_url("**/?q=mill")
    await expect(page.locator("#suggestions")).to_be_hidden()
    await expect(page.locator("#view h1")).to_be_focused()
    assert await page.title() != title
    assert len(watch.asked_for("/tool/find_shop")) == found


async def test_what_was_typed_is_left_by_emptying_it_and_come_back_to_after_a_result(
    site: Site, visitor: Visitor
) -> None:
    page, _ = await visitor.visit(site.base)
    await typed(page, "mill")
    await shown(page, "results")
    await page.locator("#search").fill("")
    await shown(page, "start")

    await typed(page, "moss")
    await shown(page, "results")
    await page.locator("[data-shop=shop_bare] a").click()
    await shown(page, "shop")

    await page.go_back()
    await page.wait_for_url("**/?q=moss")
    await shown(page, "results")
    await expect(page.locator("#search")).to_have_value("moss")
    await page.go_back()
    await shown(page, "start")
    assert page.url == f"{site.base}/"


async def test_nothing_is_replaced_under_a_pointer_that_moves_there(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await typed(page, "mill")
    await shown(page, "results")
    heading = page.locator("#view h1")
    # Below the suggestions.
    row = await page.locator("[data-shop]").nth(6).bounding_box()
    assert row is not None
    asked, release = await hold(page, "mill 0")
    await page.locator("#search").press_sequentially(" 0")
    await asyncio.wait_for(asked.wait(), 5)
    await page.mouse.move(row["x"] + 300, row["y"] + 10)
    await page.mouse.move(row["x"] + 310, row["y"] + 12)

    await release()
    await page.wait_for_timeout(300)  # longer than a skeleton waits
    await expect(heading).to_have_text("Shops for “mill”")
    assert await page.locator("[data-shop]").nth(6).bounding_box() == row
    await page.mouse.move(600, 20)

    await expect(heading).to_have_text("Shops for “mill 0”")


async def test_a_view_that_stays_under_the_pointer_goes_on_working(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books", Screen(height=2_000), announced=(404,))
    offers = await section(page, "offers", "ok")
    silent = offers.locator("li").filter(has_text="Something Unsaid")
    place = await silent.bounding_box()
    assert place is not None
    asked, release = await hold(page, "mill", results=True)
    await page.locator("#search").press_sequentially("mill")
    await asyncio.wait_for(asked.wait(), 5)
    await page.mouse.move(place["x"] + 5, place["y"] + 5)
    await page.mouse.move(place["x"] + 15, place["y"] + 10)
    await release()

    await silent.get_by_role("button").click()

    await expect(silent).to_contain_text("states no address that safely leads to its shop’s checkout")


async def test_nothing_is_replaced_while_the_focus_moves_within_it(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=mill")
    await shown(page, "results")
    asked, release = await hold(page, "mill 0", results=True)
    await page.locator("#search").press("End")
    await page.locator("#search").press_sequentially(" 0")
    await asyncio.wait_for(asked.wait(), 5)
    await page.locator("[data-shop] a").nth(0).focus()
    await release()

    await page.keyboard.press("Tab")
    await page.wait_for_timeout(300)
    await expect(page.locator("#view h1")).to_have_text("Shops for “mill”")
    await page.locator("#search").focus()

    await expect(page.locator("#view h1")).to_have_text("Shops for “mill 0”")


async def test_whoever_reads_before_the_script_comes_stays_where_they_are(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    come = asyncio.Event()

    async def keep(route: Route) -> None:
        await come.wait()
        await route.continue_()

    await page.route("**/assets/main.js", keep)
    await page.goto(f"{site.base}/?q=mill", wait_until="commit")
    await expect(page.locator("[data-shop]")).to_have_count(20)
    await page.evaluate("scrollTo(0, 600)")
    come.set()

    await expect(page.locator(".filters")).to_be_visible()
    assert await page.evaluate("scrollY") == 600


async def test_typing_leaves_half_of_the_quota_to_reading(serve: Serve, visitor: Visitor) -> None:
    page, watch = await visitor.visit(
        serve([shop("Harbour Lane")], quota_anonymous=QuotaClass(reads=12, suggest=1_000, reports=0))
    )
    await shown(page, "start")
    for letter in "harbour":
        await typed(page, letter)
        await expect(page.locator("#view")).to_have_attribute("aria-busy", "false")
    await expect(page.locator("#view h1")).to_have_text("Press Enter to search for “harbour”")
    assert len([line for line in watch.asked if "/tool/" in line]) < 12

    await page.locator("#search").press("Enter")
    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_count(1)


async def test_what_takes_long_has_a_skeleton_and_never_the_old_view(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    asked, release = await hold(page, "", results=True)
    await page.locator("[data-slug=paper]").click()
    await asyncio.wait_for(asked.wait(), 5)

    await expect(page.locator("#view > .bones")).to_be_visible()
    await expect(page.locator("#view > *")).to_have_count(1)
    await expect(page.locator("#status")).to_have_text("Looking …")
    await release()

    await shown(page, "category")
    await expect(page.locator(".bones")).to_have_count(0)


FOCUSED = "document.activeElement.id"


async def to_search(page: Page) -> None:
    for _ in range(8):
        if await page.evaluate(FOCUSED) == "search":
            return
        await page.keyboard.press("Tab")
    pytest.fail("the search field is not reached by a few presses of Tab")


async def active(page: Page) -> str | None:
    """The id or slug of the option that the field points to; all for the last row."""
    pointed = await page.locator("#search").get_attribute("aria-activedescendant")
    if not pointed:
        return None
    option = page.locator(f"[id='{pointed}']")
    await expect(option).to_have_attribute("aria-selected", "true")
    return await option.get_attribute("data-key") or await option.get_attribute("data-kind")


async def test_arrows_go_round_escape_goes_back_to_what_was_typed_and_tab_leaves(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await to_search(page)
    await page.keyboard.type("books")
    await suggested(page, "Harbour Lane Books", "森の本屋さん", "Books")
    assert await active(page) is None
    field = page.get_by_role("combobox", name="Find a shop by name or domain, or a category")
    await expect(field).to_have_attribute("aria-controls", "suggestions")
    await expect(field).to_have_attribute("aria-expanded", "true")

    passed = []
    for _ in range(5):
        await page.keyboard.press("ArrowDown")
        passed.append(await active(page))
    assert passed == ["shop_books", "shop_japanese", "books", "all", "shop_books"]
    await page.keyboard.press("ArrowUp")
    assert await active(page) == "all"

    await page.keyboard.press("Escape")
    await expect(page.locator("#suggestions")).to_be_hidden()
    await expect(page.locator("#search")).to_have_attribute("aria-expanded", "false")
    assert await active(page) is None
    await expect(page.locator("#search")).to_have_value("books")
    assert await page.evaluate(FOCUSED) == "search"

    await page.keyboard.press("ArrowDown")
    await expect(page.locator("#suggestions")).to_be_visible()
    await page.keyboard.press("Tab")
    assert await page.evaluate(FOCUSED) != "search"
    await expect(page.locator("#suggestions")).to_be_hidden()


async def test_an_answer_to_the_last_key_leaves_the_visitor_where_they_are_in_the_list(
    site: Site, visitor: Visitor
) -> None:
    page, _ = await visitor.visit(site.base)
    await typed(page, "book")
    asked, release = await hold(page, "books")

    await page.locator("#search").press("s")
    await asyncio.wait_for(asked.wait(), 5)
    for _ in range(3):
        await page.keyboard.press("ArrowUp")
    assert await active(page) == "books"
    await release()

    assert await active(page) == "books"
    assert await page.locator("#suggestions [aria-selected=true]").count() == 1


async def test_typing_on_leaves_the_list(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await typed(page, "book")
    await page.keyboard.press("ArrowDown")
    asked, release = await hold(page, "books")

    await page.locator("#search").press("s")
    await asyncio.wait_for(asked.wait(), 5)
    before = await active(page)
    await release()

    assert before is None
    assert await active(page) is None


async def test_focus_is_always_seen(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    unseen, seen = [], 0
    style = (
        "(() => { const one = document.activeElement; if (one === document.body) return null;"
        " const now = getComputedStyle(one);"
        " return [one.outerHTML.slice(0, 80), now.outlineStyle !== 'none' && parseFloat(now.outlineWidth) >= 1"
        " || now.boxShadow !== 'none'"
        " || one.id === 'search' && getComputedStyle(one.parentElement).outlineStyle !== 'none'] })()"
    )
    for _ in range(60):
        await page.keyboard.press("Tab")
        styled = await page.evaluate(style)
        if styled is None:
            break
        seen += 1
        unseen += [] if styled[1] else [styled[0]]

    assert unseen == []
    assert seen >= 5


async def test_keys_belong_to_the_input_method_while_signs_are_composed(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    await to_search(page)
    session = await page.context.new_cdp_session(page)

    await session.send("Input.imeSetComposition", {"text": "森の本", "selectionStart": 3, "selectionEnd": 3})
    await suggested(page, "森の本屋さん")
    # The keys by which a user chooses among signs, as an input method sends them to the page.
    taken = await page.locator("#search").evaluate(
        """(field) => ["ArrowDown", "Enter", "Escape"].map((key) => !field.dispatchEvent(
            new KeyboardEvent("keydown", { key, isComposing: true, bubbles: true, cancelable: true })))"""
    )
    assert taken == [False, False, False]
    assert await active(page) is None
    await expect(page.locator("#suggestions")).to_be_visible()
    await session.send("Input.insertText", {"text": "森の本"})

    await suggested(page, "森の本屋さん")
    await expect(page.locator("#search")).to_have_value("森の本")
    await page.keyboard.press("Enter")
    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_japanese")
