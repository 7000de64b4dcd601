"""By keyboard alone: from the load to a shop and back, without a mouse and without a trap."""

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import hold, shown, suggested, typed

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

FOCUSED = "document.activeElement.id"


async def to_search(page: Page, key: str = "Tab") -> None:
    """Press Tab, or Shift+Tab, until the search field has the focus."""
    for _ in range(8):
        if await page.evaluate(FOCUSED) == "search":
            return
        await page.keyboard.press(key)
    pytest.fail("the search field is not reached by a few presses of Tab")


async def active(page: Page) -> str | None:
    """The id or slug of the option that the field points to; all for the last row."""
    pointed = await page.locator("#search").get_attribute("aria-activedescendant")
    if not pointed:
        return None
    option = page.locator(f"[id='{pointed}']")
    await expect(option).to_have_attribute("aria-selected", "true")
    return await option.get_attribute("data-key") or await option.get_attribute("data-kind")


async def test_from_the_load_to_a_shop_and_back(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")

    await to_search(page)
    await page.keyboard.type("harb")
    await suggested(page, "Harbour Lane Books")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await shown(page, "shop")
    await expect(page.locator("#suggestions")).to_be_hidden()
    assert "shop=" in page.url

    for _ in range(12):
        await page.keyboard.press("Shift+Tab")
        if await page.evaluate("document.activeElement.getAttribute('href')") == "./":
            break
    await page.keyboard.press("Enter")
    await shown(page, "start")


async def test_arrows_go_round_and_escape_goes_back_to_what_was_typed(site: Site, visitor: Visitor) -> None:
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


async def test_enter_without_a_choice_searches_and_tab_leaves(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await to_search(page)
    await page.keyboard.type("books")
    await suggested(page, "Harbour Lane Books", "森の本屋さん", "Books")

    await page.keyboard.press("Enter")
    await shown(page, "results")
    await expect(page.locator("#suggestions")).to_be_hidden()
    await expect(page.locator("[data-shop]")).to_have_count(2)

    await to_search(page, "Shift+Tab")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("#suggestions")).to_be_visible()
    await page.keyboard.press("Tab")
    assert await page.evaluate(FOCUSED) != "search"
    await expect(page.locator("#suggestions")).to_be_hidden()


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
