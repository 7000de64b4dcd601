"""<shop-typeahead> on a page of another origin, under a strict policy: by keyboard, by name and role, by its event."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect

from tests.people.docs.pages import BY_PATH
from tests.people.web.browser import CUT, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import hold, typed_in
from tests.people.web.test_accessible import axe_violations
from tests.support.loopback import listening

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The origin of a page that shows the widget of a service of another origin."""

    base: str
    service: str


def documented(language: str) -> str:
    (text,) = (block.text for block in BY_PATH["docs/clients.md"].blocks if block.language == language)
    return text


@pytest.fixture(scope="module")
def elsewhere(site: Site) -> Iterator[Elsewhere]:
    """What docs/clients.md shows, on a page of another port: another origin to a browser. Its policy is strict."""
    markup = documented("html").replace("http://localhost:8080", site.base)
    page = f"""<!doctype html><html lang="en"><title>Elsewhere</title><link rel="icon" href="data:,">
        <link rel="stylesheet" href="page.css"><script type="module" src="page.js"></script>
        <main><h1>Elsewhere</h1>{markup}<output></output></main></html>"""
    files = {
        "/": ("text/html", page),
        "/page.js": ("text/javascript", documented("js")),
        "/page.css": ("text/css", documented("css")),
    }
    policy = (
        f"default-src 'none'; img-src data:; script-src 'self' {site.base}; style-src 'self'; "
        f"connect-src {site.base}; require-trusted-types-for 'script'"
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            media_type, body = files[self.path]
            self.send_response(200)
            self.send_header("content-type", f"{media_type}; charset=utf-8")
            self.send_header("content-security-policy", policy)
            self.end_headers()
            self.wfile.write(body.encode())

    with listening(Handler) as port:
        yield Elsewhere(f"http://127.0.0.1:{port}", site.base)


@pytest_asyncio.fixture(loop_scope="session")
async def page(elsewhere: Elsewhere, visitor: Visitor) -> AsyncIterator[Page]:
    """The page, open, with the events of its widget in `window.chosen`; it may ask for nothing but the service."""
    page, watch = await visitor.arrive(elsewhere.base, announced=(CUT,))
    await page.add_init_script(
        "window.chosen = []; addEventListener('choose', ({ detail }) => window.chosen.push(detail));"
    )
    await page.goto(elsewhere.base)
    await expect(page.get_by_role("combobox", name="Which shop?")).to_be_visible()
    yield page
    allowed = tuple(f"asked another server: {elsewhere.service}{path}" for path in ("/widget.js", "/suggest?"))
    watch.wrong[:] = [wrong for wrong in watch.wrong if not wrong.startswith(allowed)]


async def offered(page: Page, *names: str) -> Locator:
    """Type nothing more: wait until exactly these are offered; returns the options."""
    options = page.get_by_role("option")
    await expect(options).to_have_count(len(names))
    for at, name in enumerate(names):
        await expect(options.nth(at)).to_contain_text(name)
    return options


async def test_a_shop_is_chosen_by_keyboard_and_the_page_gets_the_event(page: Page) -> None:
    field = page.get_by_role("combobox", name="Which shop?")
    before = await page.locator("shop-typeahead").bounding_box()
    await page.keyboard.press("Tab")
    await expect(field).to_be_focused()
    await expect(field).to_have_attribute("aria-expanded", "false")

    await page.keyboard.type("hrabour")
    options = await offered(page, "Harbour Lane Books")
    await expect(field).to_have_attribute("aria-expanded", "true")
    await expect(page.locator("shop-typeahead").get_by_role("status")).to_have_text("Suggestions: 1")
    # The page does not move while somebody types.
    assert await page.locator("shop-typeahead").bounding_box() == before
    await page.keyboard.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    assert await field.get_attribute("aria-activedescendant") == await options.first.get_attribute("id")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("listbox")).to_be_hidden()
    await expect(field).to_have_value("Harbour Lane Books")
    (chosen,) = await page.evaluate("window.chosen")
    assert (chosen["kind"], chosen["shop"]["id"], chosen["shop"]["domain"]) == (
        "shop", "shop_books", "harbour-lane-books.internal",
    )  # fmt: skip
    await expect(page.locator("output")).to_have_text("harbour-lane-books.internal")


async def test_a_category_is_chosen_by_a_click(page: Page) -> None:
    await page.get_by_role("combobox").press_sequentially("stat")
    options = await offered(page, "Stationery")

    await options.first.click()

    assert await page.evaluate("window.chosen") == [
        {"kind": "category", "category": {"category": "Stationery", "slug": "stationery", "count": 1}}
    ]


async def test_escape_closes_the_list_then_empties_the_field(page: Page) -> None:
    field = page.get_by_role("combobox")
    await field.press_sequentially("harb")
    await offered(page, "Harbour Lane Books")

    await page.keyboard.press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await expect(field).to_have_value("harb")
    await page.keyboard.press("Escape")

    await expect(field).to_have_value("")
    assert await page.evaluate("window.chosen") == []


async def test_its_open_list_looks_like_the_page_and_axe_finds_nothing(page: Page) -> None:
    field = page.get_by_role("combobox")
    async with page.expect_response("**/suggest?q=harb&*"):  # an answer to fewer letters is replaced by this one
        await field.press_sequentially("harb")
    options = await offered(page, "Harbour Lane Books")
    await page.keyboard.press("ArrowDown")

    await expect(options.first).to_have_css("background-color", "rgb(13, 102, 85)")
    assert await field.evaluate("one => getComputedStyle(one).borderWidth") == "2px"
    assert await axe_violations(page) == []


async def test_its_attributes_go_into_the_question(page: Page, elsewhere: Elsewhere) -> None:
    async with page.expect_request(f"{elsewhere.service}/suggest?*") as asked:
        await page.get_by_role("combobox").press("m")

    assert (await asked.value).url == f"{elsewhere.service}/suggest?q=m&limit=3&country=DE"


async def test_fast_typing_asks_once_and_a_later_key_cancels(page: Page, elsewhere: Elsewhere) -> None:
    asked: list[str | None] = []
    page.on("request", lambda request: asked.append(typed_in(request.url)))
    field = page.get_by_role("combobox")
    held, _ = await hold(page, "harb")
    await field.focus()
    await field.evaluate(
        "(field, texts) => texts.forEach((text) => { field.value = text; field.dispatchEvent(new Event('input')) })",
        ["h", "ha", "har", "harb"],
    )
    await asyncio.wait_for(held.wait(), 5)
    async with page.expect_event("requestfailed", lambda request: typed_in(request.url) == "harb"):
        await field.fill("harbour")
    await offered(page, "Harbour Lane Books")

    assert [text for text in asked if text] == ["harb", "harbour"]


async def test_a_changed_country_changes_what_is_suggested(page: Page) -> None:
    await page.get_by_role("combobox").press_sequentially("harb")
    await offered(page, "Harbour Lane Books")

    await page.evaluate("document.querySelector('shop-typeahead').setAttribute('country', 'JP')")

    await expect(page.get_by_role("listbox")).to_be_hidden()


async def test_a_tool_that_the_origin_may_not_call_is_a_failed_fetch(elsewhere: Elsewhere, visitor: Visitor) -> None:
    page, watch = await visitor.visit(elsewhere.base, announced=(CUT,))
    call = "url => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' } })"
    message = await page.evaluate(f"{call}.catch((error) => error.message)", f"{elsewhere.service}/tool/find_shop")
    assert message == "Failed to fetch"
    assert any("blocked by CORS policy" in wrong for wrong in watch.wrong)
    watch.wrong.clear()


async def test_a_failure_is_no_empty_list(page: Page) -> None:
    async def refuse(route: Route) -> None:
        await route.abort("connectionreset")

    await page.route("**/suggest?*", refuse)
    await page.get_by_role("combobox").press("h")

    await expect(page.locator("shop-typeahead").get_by_role("status")).to_have_text("The directory did not answer.")
    await expect(page.get_by_role("listbox")).to_be_hidden()


async def test_markup_in_an_answer_stays_text(page: Page) -> None:
    name = "<img src=x onerror=document.title='broken'>"

    async def hostile(route: Route) -> None:
        shops = [{"id": "x", "name": name, "domain": "<b>x</b>", "category": "x", "score": 8.0}]
        body = json.dumps({"query": "x", "shops": shops, "categories": []})
        await route.fulfill(body=body, headers={"access-control-allow-origin": "*"}, content_type="application/json")

    await page.route("**/suggest?*", hostile)
    await page.get_by_role("combobox").press("x")

    await offered(page, name)
    assert (
        await page.evaluate("document.querySelector('shop-typeahead').shadowRoot.querySelectorAll('img, b').length")
        == 0
    )
    assert await page.title() == "Elsewhere"


async def test_a_category_keeps_its_shops_and_no_others_where_a_word_fits_none(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/widget.html")
    field = page.get_by_role("combobox", name="Find a shop")
    await field.press_sequentially("books")
    await offered(page, "Harbour Lane Books", "森の本屋さん", "Books")

    await page.evaluate("document.querySelector('shop-typeahead').setAttribute('category', 'stationery')")
    await offered(page, "Harbour Lane Books")
    await field.fill("hrabour")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    await field.fill("harbour")
    await (await offered(page, "Harbour Lane Books")).first.click()
    await expect(page.locator("#chosen")).to_contain_text('"id": "shop_books"')


async def test_its_own_page_shows_it_and_each_event(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/widget.html")
    await expect(page.locator("#markup")).to_contain_text(f'src="{site.base}/widget.js"')

    await page.get_by_role("combobox", name="Find a shop").press_sequentially("harb")
    await offered(page, "Harbour Lane Books")
    assert await axe_violations(page) == []
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")

    await expect(page.locator("#chosen")).to_contain_text('"domain": "harbour-lane-books.internal"')
