"""What a visitor does and waits for, in the words of the page's structure: its ids and `data-` attributes."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Locator, Page, Request, Response, Route, expect

# After these, what came in before is on the screen.
TWO_FRAMES: Final = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def shown(page: Page, view: str) -> Locator:
    """Wait until a view (start, results, category, shop or error) stands there whole; returns it."""
    main = page.locator("#view")
    await expect(main).to_have_attribute("data-view", view)
    await expect(main).not_to_have_attribute("aria-busy", "true")
    if view == "shop":
        await expect(page.locator("#view [data-state='loading']")).to_have_count(0)
    return main


async def section(page: Page, name: str, state: str) -> Locator:
    """Wait until a section of the shop view says how it stands; returns it."""
    found = page.locator(f"#{name}")
    await expect(found).to_have_attribute("data-state", state)
    return found


async def sign_in(page: Page, token: str, *, refused: str = "") -> None:
    """Enter a token, pasted as a whole; an empty one signs out. `refused` is what is said of one that is not taken."""
    await page.locator("#corner").click()
    await page.locator("#token").fill(token)
    await page.locator("#token").press("Enter")
    if refused:
        await expect(page.locator("#token-note")).to_contain_text(refused)
        await expect(page.locator("#token")).to_have_attribute("aria-invalid", "true")
        await page.keyboard.press("Escape")
    await expect(page.locator("#account")).to_be_hidden()


async def typed(page: Page, text: str) -> None:
    """Type into the search field as a person does, key by key, until all of it has been answered."""
    search = page.locator("#search")
    whole = await search.input_value() + text
    async with page.expect_response(lambda response: typed_in(response.url) == whole) as answered:
        await search.press_sequentially(text)
    await (await answered.value).finished()
    await page.evaluate(TWO_FRAMES)


def typed_in(address: str) -> str | None:
    """The text that a request to /suggest carries; None of another request."""
    parts = urlsplit(address)
    return parse_qs(parts.query)["q"][0] if parts.path == "/suggest" else None


def searched_for(request: Request) -> str | None:
    """The query that a request to find_shop carries; None of another request."""
    asks = urlsplit(request.url).path == "/tool/find_shop"
    return str(json.loads(request.post_data or "{}")["query"]) if asks else None


async def hold(
    page: Page, text: str, *, results: bool = False
) -> tuple[asyncio.Event, Callable[[], Awaitable[Response]]]:
    """Delay the suggestions of one text, or its `results`; returns "has been asked", and what lets the answer come."""
    asked, held = asyncio.Event(), list[Route]()

    def is_meant(request: Request) -> bool:
        return (searched_for(request) if results else typed_in(request.url)) == text

    async def keep(route: Route) -> None:
        if not is_meant(route.request):
            await route.continue_()
            return
        held.append(route)
        asked.set()

    async def release() -> Response:
        (route,) = held
        async with page.expect_response(lambda response: is_meant(response.request)) as late:
            await route.continue_()
        answer = await late.value
        await answer.finished()
        await page.evaluate(TWO_FRAMES)
        return answer

    await page.route("**/tool/find_shop" if results else "**/suggest?*", keep)
    return asked, release


async def suggested(page: Page, *names: str) -> None:
    """Wait until exactly these categories and shops are offered, in this order."""
    options = page.locator("#suggestions [data-key]")
    await expect(options).to_have_count(len(names))
    for position, name in enumerate(names):
        await expect(options.nth(position)).to_contain_text(name)


async def texts(locator: Locator) -> list[str]:
    return [" ".join(text.split()) for text in await locator.all_inner_texts()]


async def text_of(locator: Locator) -> str:
    return " ".join((await locator.inner_text()).split())
