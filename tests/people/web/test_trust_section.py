"""Trust: facts one by one with source and time, what is missing with its reason, and never a score."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Route, expect

from service.app import create_app
from service.settings.service import Settings
from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in, text_of
from tests.support.callers import issue
from tests.support.catalogues import shop
from tests.support.catalogues import trust as measured
from tests.support.served import served
from tests.support.worlds import embedded_world

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

SCORES = re.compile(
    r"[0-9]+ ?%|[0-9] ?/ ?[0-9]|★|☆|score|rating|\b[0-9]+ (?:out )?of [0-9]+\b|trustworthy", re.IGNORECASE
)


async def test_without_a_token_the_section_asks_for_one(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books", announced=(401,))
    await shown(page, "shop")

    trust = page.locator("#trust")
    await expect(trust).to_contain_text("token")
    assert await trust.get_attribute("data-state") == "missing"
    assert watch.asked_for("/tool/get_trust") == []


async def test_a_wrong_token_is_said_and_a_right_one_shows_the_facts(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books", announced=(401,))
    await shown(page, "shop")

    await sign_in(page, "sd_wrong")
    await expect(await section(page, "trust", "error")).to_contain_text("unknown, revoked or expired")

    await sign_in(page, site.token)
    trust = await section(page, "trust", "ok")
    text = await text_of(trust)
    for part in (
        "Invented Authority R3", "tls handshake", "Germany", "ip registry", "invoice", "card", "checkout page",
        "6 May 2031", "07:08",
    ):  # fmt: skip
        assert part in text


@pytest.mark.rule("I31")
async def test_missing_facts_have_their_reason_and_nothing_is_a_score(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books", announced=(401,))
    await sign_in(page, site.token)
    trust = await section(page, "trust", "ok")

    await expect(trust).to_contain_text("Registrar")
    await expect(trust).to_contain_text("was looked at, without a usable result")
    assert SCORES.search(await text_of(trust)) is None
    assert await trust.locator("meter, progress").count() == 0


async def test_nothing_measured_is_no_verdict(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await sign_in(page, site.token)
    await page.goto(f"{site.base}/?shop=shop_bare")

    trust = await section(page, "trust", "missing")

    await expect(trust).to_contain_text("verdict")
    assert SCORES.search(await text_of(trust)) is None


async def test_the_token_is_in_no_address_and_stored_for_this_tab_only_until_it_is_taken_out(
    site: Site, visitor: Visitor
) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await sign_in(page, site.token)
    await section(page, "trust", "ok")

    await page.reload()
    await section(page, "trust", "ok")
    assert site.token in await page.evaluate("Object.values(sessionStorage)")
    assert await page.evaluate("[Object.keys(localStorage).length, document.cookie]") == [0, ""]
    other = await page.context.new_page()
    await other.goto(f"{site.base}/?shop=shop_books")
    await section(other, "trust", "missing")
    assert not any(site.token in line for line in (page.url, *watch.asked))

    await sign_in(page, "")

    await section(page, "trust", "missing")
    assert await page.evaluate("Object.values(sessionStorage)") in ([], [""])


async def test_a_token_that_is_entered_while_the_shop_is_on_its_way_counts(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    held = asyncio.Event()

    async def keep(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/tool/get_shop", keep)
    await page.goto(f"{site.base}/?shop=shop_books")
    await expect(page.locator("#view")).to_have_attribute("aria-busy", "true")
    await sign_in(page, site.token)
    held.set()

    await section(page, "trust", "ok")


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[Site]:
    """A service with one shop whose facts have different times."""
    tokens = tmp_path / "tokens.sqlite"
    facts = [
        measured("shop_a", "tls_grade", "A", checked_at="2026-03-01T00:00:00Z"),
        measured("shop_a", "hosting_isp", "Invented Hosting", checked_at="2026-05-01T00:00:00Z"),
        # An event of its own time, whenever it was looked up.
        measured("shop_a", "domain_registered_at", "2009-04-01T00:00:00Z", checked_at="2026-06-01T00:00:00Z"),
    ]
    world = embedded_world(tmp_path / "world", [shop("Maple", id="shop_a")], trust=facts)
    token = issue(tokens).text
    with served(create_app(Settings(data_dir=world, token_file=tokens))) as base:
        yield Site(base, token)


async def test_facts_stand_in_the_order_of_their_time(dated: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(dated.base, "/?shop=shop_a")
    await sign_in(page, dated.token)
    trust = await section(page, "trust", "ok")

    order = await trust.locator("[data-signal]").evaluate_all("all => all.map(one => one.dataset.signal)")

    assert order == ["hosting_isp", "tls_grade", "domain_registered_at"]
