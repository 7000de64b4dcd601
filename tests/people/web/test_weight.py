"""The page is light and asks no other server: all that it loads, by its bytes, its origin and its policy."""

import re
from typing import Any

import pytest

from tests.people.web.browser import CUT, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in, suggested, typed
from tests.support.served import get

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

MOST_BYTES = 60_000


async def test_all_files_of_the_page_are_small_together(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    answers: list[Any] = []
    page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - Playwright marks each listener
    await page.goto(site.base)
    await shown(page, "start")
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")
    await page.locator("#search").press("ArrowDown")
    await page.locator("#search").press("Enter")
    await shown(page, "shop")

    files = {answer.url.removeprefix(site.base): answer for answer in answers if "/assets/" in answer.url}
    files["/"] = answers[0]
    sizes = {path: len(await answer.body()) for path, answer in files.items()}
    named = re.findall(r'(?:href|src)="(assets/[^"]+)"', get(site.base, "/").body.decode())

    assert {f"/{path}" for path in named} | {"/"} == set(sizes)
    assert sum(sizes.values()) < MOST_BYTES
    encoded = {path for path, answer in files.items() if answer.headers.get("content-encoding") == "gzip"}
    assert encoded == set(files) - {"/assets/icon.svg"}  # which is shorter than a kilobyte


async def test_only_the_public_interface_is_asked(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books&country=DE")
    await sign_in(page, site.token)
    await section(page, "trust", "ok")
    await page.goto(f"{site.base}/?q=harbour+zzqq")
    await shown(page, "results")
    await page.locator("#search").fill("")
    await typed(page, "x")

    paths = {
        line.removeprefix(f"GET {site.base}").removeprefix(f"POST {site.base}").split("?")[0] for line in watch.asked
    }

    assert {path for path in paths if not path.startswith("/assets/")} == {
        "/",
        "/suggest",
        *(
            f"/tool/{tool}"
            for tool in ("find_shop", "list_categories", "get_shop", "list_coupons", "get_shipping_policy", "get_trust")
        ),
    }


@pytest.mark.parametrize(
    "attack",
    [
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit = 1\">')",
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.hit = 1' }))",
        "new Function('window.hit = 1')()",
        "document.body.setAttribute('onclick', 'window.hit = 1'); document.body.click()",
    ],
)
async def test_a_text_that_became_markup_would_still_do_nothing(site: Site, visitor: Visitor, attack: str) -> None:
    page, watch = await visitor.visit(site.base)
    await shown(page, "start")

    await page.evaluate(
        # In the page's own world and from a timer, where its policy counts.
        "attack => setTimeout(() => { try { " + attack + " } catch { /* refused */ } })",
        attack,
    )
    await page.wait_for_timeout(100)

    assert await page.evaluate("window.hit") is None
    assert watch.wrong
    assert all(
        "Trusted" in fault or "Content Security Policy" in fault or "script-src" in fault for fault in watch.wrong
    )
    watch.wrong.clear()


async def test_nothing_can_be_sent_elsewhere(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, announced=(CUT,))
    await shown(page, "start")

    refused = await page.evaluate("fetch('http://127.0.0.1:9/steal').then(() => 'sent', (error) => error.name)")

    assert refused == "TypeError"
    assert any("connect-src" in fault for fault in watch.wrong)
    watch.wrong.clear()
