"""A shop: codes with their state in words, shipping with verdict and source, offers; what is missing is said to be."""

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from tests.people.web.browser import Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, text_of

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

OUTWARDS = "one => [one.href, one.target, one.rel.split(' ').sort().join(' '), one.referrerPolicy]"
PASSES_NOTHING_ON = ("_blank", "external nofollow noopener noreferrer", "no-referrer")


async def test_the_identity_of_the_shop_and_a_link_to_it_that_passes_nothing_on(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    main = await shown(page, "shop")

    for part in (
        "Harbour Lane Books",
        "harbour-lane-books.internal",
        "HLB",
        "Books",
        "Stationery",
        "Germany",
        "France",
    ):
        await expect(main).to_contain_text(part)
    link = main.get_by_role("link", name="Visit the shop")
    assert await link.evaluate(OUTWARDS) == ["https://harbour-lane-books.internal/", *PASSES_NOTHING_ON]


async def test_codes_say_what_is_proven_and_withheld_ones_are_only_counted(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    coupons = await section(page, "coupons", "ok")
    codes = coupons.locator("li, article, tr").filter(has=page.locator("[data-copy]"))
    await expect(codes).to_have_count(3)

    worked, inconclusive, untested = [(await text_of(codes.nth(at))).lower() for at in range(3)]

    for part in (
        "worked-10",
        "a tenth off",
        "10% off",
        "worked in a real checkout",
        "18 oct 2026",
        "30 jun 2035",
        "€25.00",
        "germany",
    ):
        assert part in worked
    assert "tested without a clear result" in inconclusive
    assert "18 oct 2026" in inconclusive
    assert "not tested yet" in untested
    assert "worked in" not in inconclusive + untested
    await expect(coupons).to_contain_text(
        "7 codes found: 3 usable, 1 expired, 2 rejected in a real checkout, 1 withheld by display policy."
    )
    for code in ("LONG-GONE", "REFUSED-A", "HELD-BACK"):
        await expect(page.locator("#view")).not_to_contain_text(code)


async def test_a_code_is_copied(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    await page.goto(f"{site.base}/?shop=shop_books")
    await section(page, "coupons", "ok")

    copy = page.locator("[data-copy]").first
    await copy.click()

    await expect(page.locator("#status")).to_contain_text("opied")
    assert await page.evaluate("navigator.clipboard.readText()") == "WORKED-10"


async def test_a_code_that_cannot_be_copied_is_said(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    await page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    await page.goto(f"{site.base}/?shop=shop_books")
    await section(page, "coupons", "ok")

    await page.locator("[data-copy]").first.click()

    await expect(page.locator("#status")).to_contain_text("does not let this page copy")


async def test_shipping_says_its_verdict_for_the_chosen_country(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books&country=DE")
    shipping = await section(page, "shipping", "ok")
    verdicts = {"DE": "ships to Germany", "AT": "does not ship to Austria", "US": "does not settle"}

    for country, verdict in verdicts.items():
        await page.locator("#country").select_option(country)

        await expect(shipping).to_contain_text(verdict)
        for part in ("Germany", "France", "3 à 5 jours ouvrés", "€33.00", "6 Jun 2026", "the shop’s page on shipping"):
            await expect(shipping).to_contain_text(part)


async def test_an_offer_is_opened_in_one_step_at_the_address_that_the_service_gives(
    site: Site, visitor: Visitor
) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books", announced=(404,))
    offers = await section(page, "offers", "ok")
    await page.context.route(re.compile("^https://"), lambda route: route.fulfill(body="the shop"))
    address = "https://harbour-lane-books.internal/lamp?size=2"
    asked = len(watch.asked)

    async with page.context.expect_page() as opened:
        await offers.locator("li").filter(has_text="Reading Lamp").get_by_role("button").click()
    tab = await opened.value
    await tab.wait_for_url(address)

    assert await tab.evaluate("[window.opener, document.referrer]") == [None, ""]
    assert watch.asked[asked:] == [f"POST {site.base}/tool/resolve_checkout_url", f"GET {address}"]
    assert watch.wrong == [f"asked another server: {address}"]
    watch.wrong.clear()


async def test_offers_say_what_is_stated_and_one_without_a_safe_address_says_so_and_leaves_no_tab(
    site: Site, visitor: Visitor
) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books", announced=(404,))
    offers = await section(page, "offers", "ok")
    for part in ("Reading Lamp", "€89.00", "in stock", "20 Oct 2026", "Something Unsaid", "not stated"):
        await expect(offers).to_contain_text(part)

    silent = offers.locator("li").filter(has_text="Something Unsaid")
    await silent.get_by_role("button").click()

    await expect(silent).to_contain_text("states no address that safely leads to its shop’s checkout")
    while page.context.pages != [page]:  # a tab takes some time to close
        await asyncio.sleep(0.05)


async def test_a_browser_that_opens_no_tab_shows_the_address_as_a_link(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    await page.add_init_script("window.open = () => null")
    await page.goto(f"{site.base}/?shop=shop_books")
    offers = await section(page, "offers", "ok")

    lamp = offers.locator("li").filter(has_text="Reading Lamp")
    await lamp.get_by_role("button").click()

    link = lamp.get_by_role("link", name="Go to harbour-lane-books.internal")
    assert await link.evaluate(OUTWARDS) == ["https://harbour-lane-books.internal/lamp?size=2", *PASSES_NOTHING_ON]


@pytest.mark.parametrize(
    ("domain", "read"),
    [
        ("xn--bcherkiste-9db.internal", "bücherkiste.internal"),
        ("shop.xn--ls8h.internal", "shop.💩.internal"),
        ("xn--pypal-4ve.internal", "xn--pypal-4ve.internal"),
        ("xn--a.internal", "xn--a.internal"),
    ],
    ids=["Latin", "astral", "two alphabets in one label", "no punycode"],
)
async def test_a_domain_is_read_in_unicode_where_that_is_safe(
    site: Site, visitor: Visitor, domain: str, read: str
) -> None:
    page, _ = await visitor.arrive(site.base)

    async def renamed(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, body=(await answer.text()).replace("moss-and-fern.internal", domain))

    await page.route("**/tool/get_shop", renamed)
    await page.goto(f"{site.base}/?shop=shop_bare")
    main = await shown(page, "shop")

    await expect(main.locator(".domain")).to_have_text(read)
    assert await main.get_by_text("Domain in ASCII").count() == int(read != domain)
    assert await main.get_by_text(domain, exact=True).count() > 0


async def test_of_a_shop_of_which_nothing_is_known_that_is_said(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_bare&country=DE")
    main = await shown(page, "shop")

    shipping = await section(page, "shipping", "missing")
    await expect(shipping).to_contain_text("not a no")
    await expect(await section(page, "offers", "missing")).to_contain_text(
        "No offers are listed. That says nothing about the shop."
    )
    await expect(await section(page, "coupons", "missing")).to_contain_text(
        "No codes are known. That says nothing about the shop."
    )
    await expect(await section(page, "trust", "missing")).to_contain_text("token")
    await expect(main).to_contain_text("not stated")
