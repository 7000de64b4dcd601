"""A shop's page: codes, shipping, offers and trust with state and source, reports; what is missing is said to be."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from playwright.async_api import Route, expect

from tests.people.web.browser import DESKTOP, PHONE, Visitor
from tests.people.web.conftest import Serve, Site
from tests.people.web.steps import section, shown, sign_in, text_of
from tests.support.catalogues import coupon, shop

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

OUTWARDS = "one => [one.href, one.target, one.rel.split(' ').sort().join(' '), one.referrerPolicy]"
PASSES_NOTHING_ON = ("_blank", "external nofollow noopener noreferrer", "no-referrer")
SCORES = re.compile(
    r"[0-9]+ ?%|[0-9] ?/ ?[0-9]|★|☆|score|rating|\b[0-9]+ (?:out )?of [0-9]+\b|trustworthy", re.IGNORECASE
)


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
        "An invented or private shop: its links lead nowhere.",
    ):
        await expect(main).to_contain_text(part)
    link = main.get_by_role("link", name="Visit the shop")
    assert await link.evaluate(OUTWARDS) == ["https://harbour-lane-books.internal/", *PASSES_NOTHING_ON]


async def test_codes_say_what_is_proven_and_withheld_ones_are_only_counted(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    coupons = await section(page, "coupons", "ok")
    codes = coupons.locator("li, article, tr").filter(has=page.locator("[data-copy]"))
    await expect(codes).to_have_count(3)

    await coupons.locator("summary", has_text="Details").nth(0).click()
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
    assert "no end date" not in worked
    assert "tested without a clear result" in inconclusive
    assert "18 oct 2026" in inconclusive
    assert "worked in" not in inconclusive
    # Nothing that is not known is listed.
    assert untested == "never-tested copy not tested yet: it may work or not details report a problem"
    await expect(coupons).to_contain_text(
        "7 codes known: 3 may work, 1 has expired, 2 were rejected in a real checkout, "
        "1 is withheld by a display policy."
    )
    for code in ("LONG-GONE", "REFUSED-A", "HELD-BACK"):
        await expect(page.locator("#view")).not_to_contain_text(code)


async def test_codes_for_another_country_come_last_and_say_so(site: Site, visitor: Visitor) -> None:
    for screen in (DESKTOP, replace(DESKTOP, scripts=False)):
        page, _ = await visitor.visit(site.base, "/?shop=shop_books&country=AT", screen)
        codes = page.locator(".coupon")
        await expect(codes.locator(".status")).to_have_text(
            ["Tested without a clear result, 18 Oct 2026", "Not tested yet: it may work or not", "Not for Austria"]
        )
        await expect(codes.last).to_contain_text("WORKED-10")
        await codes.last.get_by_text("Details").click()
        await expect(codes.last).to_contain_text("Worked in a real checkout, 18 Oct 2026")
    page, _ = await visitor.visit(site.base, "/?shop=shop_books&country=AT")
    await page.locator("#country").select_option("DE")
    await expect(page.locator(".coupon").first).to_contain_text("WORKED-10")
    await expect(page.locator(".status.bad")).to_have_count(0)


async def test_a_code_is_never_broken(serve: Serve, visitor: Visitor) -> None:
    code = "LONGEST" * 9
    coupons = [coupon(code, "shop_moss")]
    base = serve([shop("Moss", id="shop_moss")], coupons=coupons)
    for screen in (PHONE, replace(PHONE, scripts=False)):
        page, _ = await visitor.visit(base, "/?shop=shop_moss", screen)
        shown = page.locator(".ticket code")
        await expect(shown).to_have_text(code)
        assert await shown.evaluate("one => one.clientHeight < 2 * parseFloat(getComputedStyle(one).fontSize)")
        assert await page.evaluate("document.documentElement.scrollWidth") <= screen.width


async def test_a_code_is_copied_and_it_is_asked_whether_it_worked(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.arrive(site.base)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.base)
    await page.goto(f"{site.base}/?shop=shop_books")
    await section(page, "coupons", "ok")

    row = page.locator(".coupon").first
    copy = row.locator("[data-copy]")
    await copy.click()

    await expect(copy).to_have_text("Copied ✓")
    await expect(page.locator("#status")).to_contain_text("is copied")
    assert await page.evaluate("navigator.clipboard.readText()") == "WORKED-10"
    asked = len(watch.asked)
    await row.get_by_role("button", name="Yes").click()
    await expect(row).to_contain_text("This answer is not kept.")
    await expect(copy).to_be_focused()
    other = page.locator(".coupon").nth(1)
    await other.locator("[data-copy]").click()
    await expect(other).to_contain_text("Did it work?")
    await other.get_by_role("button", name="No").click()
    await expect(other.locator(".report summary")).to_be_focused()
    await expect(other).to_contain_text("A report is made with a token.")
    assert len(watch.asked) == asked
    await page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) }")
    await copy.click()
    await expect(page.locator("#status")).to_contain_text("does not let this page copy")


async def test_shipping_says_its_verdict_for_the_chosen_country(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books&country=DE")
    shipping = await section(page, "shipping", "ok")
    verdicts = {"DE": "ships to Germany", "AT": "does not ship to Austria", "US": "does not settle"}

    for country, verdict in verdicts.items():
        await page.locator("#country").select_option(country)

        await expect(shipping).to_contain_text(verdict)
        for part in (
            "Germany",
            "France",
            "Except",
            "3 à 5 jours ouvrés",
            "€33.00",
            "6 Jun 2026",
            "the shop’s page on shipping",
        ):
            await expect(shipping).to_contain_text(part)
        # The statement on returns is for Germany alone (F10).
        for part in ("14 days from delivery", "Apply in"):
            shown = expect(shipping)
            await (shown.to_contain_text(part) if country == "DE" else shown.not_to_contain_text(part))


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

    gone = offers.locator("li").filter(has_text="Sold Out")
    await expect(gone).to_contain_text("out of stock")
    await expect(gone.get_by_role("button")).to_have_count(0)

    silent = offers.locator("li").filter(has_text="Something Unsaid")
    await silent.get_by_role("button").click()

    await expect(silent).to_contain_text("states no address that safely leads to its shop’s checkout")
    while page.context.pages != [page]:  # a tab takes some time to close
        await asyncio.sleep(0.05)


async def test_a_browser_that_opens_no_tab_shows_the_address_as_a_link(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    offers = await section(page, "offers", "ok")
    await page.evaluate("() => { window.open = () => null }")

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
        ("xn--b.internal", "xn--b.internal"),
    ],
    ids=["Latin", "astral", "two alphabets in one label", "no punycode", "a number without its end"],
)
async def test_a_domain_is_read_in_unicode_where_that_is_safe(
    site: Site, visitor: Visitor, domain: str, read: str
) -> None:
    page, _ = await visitor.arrive(site.base)

    async def renamed(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, body=(await answer.text()).replace("moss-and-fern.internal", domain))

    await page.route(f"{site.base}/?shop=shop_bare", renamed)
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


@pytest.mark.rule("I31")
async def test_a_wrong_token_is_refused_where_it_is_typed_and_a_right_one_shows_facts_by_their_time(
    site: Site, visitor: Visitor
) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books", announced=(401,))
    await shown(page, "shop")

    await sign_in(page, "sd_wrong", refused="unknown, revoked or expired")
    await section(page, "trust", "missing")

    await sign_in(page, site.token)
    trust = await section(page, "trust", "ok")
    text = await text_of(trust)
    for part in (
        "Invented Authority R3", "tls handshake", "Germany", "ip registry", "invoice", "card", "checkout page",
        "6 May 2031", "07:08",
    ):  # fmt: skip
        assert part in text
    order = await trust.locator("[data-signal]").evaluate_all("all => all.map(one => one.dataset.signal)")
    assert order == ["hosting_country", "tls_issuer", "payment_methods", "domain_registered_at"]
    await expect(trust).to_contain_text("Registrar")
    await expect(trust).to_contain_text("was looked at, without a usable result")
    assert SCORES.search(text) is None
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
    await page.goto(f"{site.base}/?q=harbour")
    await page.get_by_role("link", name="Harbour Lane Books").click()
    await expect(page.locator("#view")).to_have_attribute("aria-busy", "true")
    await sign_in(page, site.token)
    held.set()

    await section(page, "trust", "ok")


async def test_an_unknown_shop_can_be_searched_for(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=harbor-lane-books", announced=(404,))
    main = await shown(page, "error")

    await expect(page.locator("#retry")).to_have_count(0)
    await main.get_by_role("link", name="Search for “harbor-lane-books”").click()

    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")


async def test_everybody_sees_where_a_problem_is_reported_and_that_a_token_does_it(
    site: Site, visitor: Visitor
) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books")
    await shown(page, "shop")
    assert watch.asked_for("/tool/get_trust") == []
    reports = page.locator(".report")
    await expect(reports).to_have_count(4)
    await reports.last.get_by_text("Report a problem", exact=True).click()
    await expect(reports.last).to_contain_text("A report is made with a token. The operator of this directory issues")
    refused = reports.last.get_by_role("button", name="Wrong category")
    await expect(refused).to_be_hidden()
    await reports.last.get_by_role("button", name="Enter a token").click()
    await expect(page.locator("#token")).to_be_focused()
    await page.keyboard.press("Escape")

    await sign_in(page, site.token)
    await expect(refused).to_be_visible()
    await expect(reports.last).not_to_contain_text("A report is made", use_inner_text=True)
    await sign_in(page, "")
    await expect(refused).to_be_hidden()


@pytest.mark.parametrize(
    ("stated", "link"),
    [("Write to the shop desk.", None), ("https://tokens.example/new", "https://tokens.example/new")],
)
async def test_it_is_said_how_this_operator_gives_a_token(
    serve: Serve, visitor: Visitor, stated: str, link: str | None
) -> None:
    base = serve([shop("Moss", "moss.example")], site_token_help=stated)
    page, _ = await visitor.visit(base)
    await page.goto(f"{base}/?shop=moss.example")
    main = await shown(page, "shop")
    hint = main.locator(".locked").first
    await expect(hint).to_contain_text("Get a token" if link else stated)
    assert await hint.locator("a").evaluate_all("all => all.map(one => one.href)") == ([link] if link else [])


async def test_a_logo_is_shown_where_it_loads_and_the_letter_where_it_does_not(serve: Serve, visitor: Visitor) -> None:
    shops = [
        shop("Moss", "moss.example", id="a", logo="https://moss.example/logo.svg", popularity=2.0),
        shop("Fern", "fern.example", id="b", logo="https://fern.example/logo.svg"),
    ]
    base = serve(shops, site_shop_logos=True)
    page, watch = await visitor.arrive(base, announced=(404,))
    drawn = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"
    await page.route("https://moss.example/**", lambda route: route.fulfill(body=drawn, content_type="image/svg+xml"))
    await page.route("https://fern.example/**", lambda route: route.fulfill(status=404))
    await page.goto(f"{base}/?q=")
    await shown(page, "results")
    moss, fern = page.locator("[data-shop=a] img"), page.locator("[data-shop=b] .badge")
    await expect(moss).to_be_visible()
    assert await moss.evaluate("one => [one.loading, one.referrerPolicy, one.alt]") == ["lazy", "no-referrer", ""]
    await expect(fern.locator("img")).to_have_count(0)
    await expect(fern).to_have_text("F")
    assert {wrong.split(": ")[0] for wrong in watch.wrong} == {"asked another server"}
    watch.wrong.clear()


async def test_a_code_is_reported_by_one_click_and_a_wrong_fact_by_its_subject(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?shop=shop_books")
    await section(page, "coupons", "ok")
    await sign_in(page, site.token)

    code = page.locator(".coupon").filter(has_text="WORKED-10")
    await code.get_by_text("Report a problem").click()
    async with page.expect_request("**/tool/report_code") as asked:
        await code.get_by_role("button", name="It was refused").click()

    assert json.loads((await asked.value).post_data or "") == {
        "shop_domain": "shop_books", "code": "WORKED-10", "reason": "invalid",
    }  # fmt: skip
    await expect(code).to_contain_text("Reported. It will be checked again.")
    await expect(code.get_by_role("button", name="It was refused")).to_be_disabled()

    await page.get_by_label("Report a problem with this shop").click()
    async with page.expect_request("**/tool/report_issue") as asked:
        await page.get_by_role("button", name="Wrong shipping cost").click()

    assert json.loads((await asked.value).post_data or "") == {
        "shop_domain": "shop_books", "subject_type": "fact", "reason": "shipping_cost",
    }  # fmt: skip
    await expect(page.locator("#status")).to_have_text("Reported. It will be checked again.")


async def test_a_report_that_is_not_taken_is_not_thanked_for(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base, announced=(401,))
    # A token that was revoked after it was entered.
    await page.add_init_script("sessionStorage.setItem('shop-directory.token', 'sd_revoked')")
    await page.goto(f"{site.base}/?shop=shop_books")
    await section(page, "coupons", "ok")
    await expect(await section(page, "trust", "error")).to_contain_text("unknown, revoked or expired")

    code = page.locator(".coupon").filter(has_text="WORKED-10")
    await code.get_by_text("Report a problem").click()
    await code.get_by_role("button", name="It was refused").click()

    await expect(code).to_contain_text("This API token is invalid")
    await expect(code).not_to_contain_text("Reported")
