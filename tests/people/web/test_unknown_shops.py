"""A shop under review and one that does not exist are the same page, to the last element."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import shown, sign_in, suggested, typed

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

# Same length, so that nothing but the name may differ.
HIDDEN, UNKNOWN = "quietly-hidden.internal", "quietly-absent.internal"


async def what_is_shown(page: Page, name: str) -> tuple[str, str, list[str]]:
    """The whole document, its title, and what was stored in the browser; the name asked for replaced."""
    document = await page.content()
    title = await page.title()
    stored = await page.evaluate("Object.keys(sessionStorage).concat(Object.keys(localStorage), document.cookie)")
    same = re.compile(re.escape(name))
    return same.sub("(name)", document), same.sub("(name)", title), stored


async def visited(site: Site, visitor: Visitor, name: str, *, token: bool) -> tuple[str, str, list[str], list[str]]:
    page, watch = await visitor.visit(site.base, announced=(404,))
    await shown(page, "start")
    if token:
        await sign_in(page, site.token)
    await page.goto(f"{site.base}/?shop={name}")
    await shown(page, "error")
    await expect(page.locator("#retry")).to_have_count(0)
    asked = [line.replace(name, "(name)") for line in watch.asked]
    return (*await what_is_shown(page, name), asked)


@pytest.mark.rule("I6")
@pytest.mark.parametrize(
    ("hidden_name", "unknown_name", "token"),
    [(HIDDEN, UNKNOWN, False), (HIDDEN, UNKNOWN, True), ("shop_hidden", "shop_absent", True)],
)
async def test_a_shop_under_review_is_shown_as_an_unknown_one(
    site: Site, visitor: Visitor, hidden_name: str, unknown_name: str, *, token: bool
) -> None:
    hidden = await visited(site, visitor, hidden_name, token=token)
    unknown = await visited(site, visitor, unknown_name, token=token)

    assert hidden == unknown
    assert "There is no such shop in the directory." in hidden[0]


async def test_an_unknown_shop_can_be_searched_for(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=harbor-lane-books", announced=(404,))
    main = await shown(page, "error")

    await main.get_by_role("link", name="Search for “harbor-lane-books”").click()

    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")


@pytest.mark.rule("I6")
@pytest.mark.parametrize("text", ["Quietly Hidden Goods", "quietly-hidden.internal", "HIDDEN-CODE", "secrets"])
async def test_no_search_shows_it(site: Site, visitor: Visitor, text: str) -> None:
    page, _ = await visitor.visit(site.base)
    await typed(page, text)
    await suggested(page)
    await page.locator("#search").press("Enter")
    main = await shown(page, "results")

    await expect(page.locator("[data-shop]")).to_have_count(0)
    await expect(main.get_by_role("link", name="Quietly Hidden Goods")).to_have_count(0)
