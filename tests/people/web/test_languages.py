"""The page in the visitor's language: as the browser asks, as the visitor chooses, from the server and the script."""

import re
from typing import Final

import pytest
from playwright.async_api import expect

from index_mappings.countries import COUNTRY_CODES
from service.web.languages import LANGUAGES, languages
from tests.people.web.browser import DESKTOP, PHONE, Screen, Visitor
from tests.people.web.conftest import Serve, Site
from tests.people.web.steps import shown, typed
from tests.support.catalogues import shop
from tests.support.served import get, post

GARDEN: Final = (
    {"slug": "garden", "names": {"de": "Garten", "pl": "Ogród", "zh-Hans": "花园"}},
    {"slug": "light", "names": {"en": "Lighting"}},
)


def lang_of(body: bytes) -> str:
    found = re.search(r'<html lang="(\w+)">', body.decode())
    assert found is not None
    return found[1]


@pytest.mark.rule("F22")
@pytest.mark.parametrize("path", ["/", "/?q=mill", "/?shop=shop_books", "/?shop=nowhere.internal", "/?q=mill&offset=x"])
def test_each_view_is_served_in_the_language_that_the_browser_asks_for(site: Site, path: str) -> None:
    for tag in LANGUAGES:
        reply = get(site.base, path, accept_language=f"{tag}-XX, ja;q=0.9")
        assert (lang_of(reply.body), reply.headers["content-language"]) == (tag, tag)
        assert languages()[tag].text("skip") in reply.body.decode()
        assert "set-cookie" not in reply.headers
        assert {"Accept-Language", "Cookie"} <= set(reply.headers["vary"].split(", "))
    assert lang_of(get(site.base, path, accept_language="ja, sv;q=0.8").body) == "en"


@pytest.mark.rule("F22")
def test_a_choice_is_remembered_for_the_page_alone(site: Site) -> None:
    chosen = get(site.base, "/?q=mill&lang=pl", accept_language="de")
    assert lang_of(chosen.body) == "pl"
    assert chosen.headers["set-cookie"] == "lang=pl; Max-Age=31536000; HttpOnly; SameSite=Lax"
    for path in ("/", "/?q=mill", "/?shop=nowhere.internal"):
        assert lang_of(get(site.base, path, accept_language="de", cookie="lang=pl").body) == "pl"
    assert "set-cookie" not in get(site.base, "/?q=mill&lang=xx").headers


@pytest.mark.rule("F22", "V2")
@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_hidden_shop_is_an_unknown_one_in_each_language(site: Site, tag: str) -> None:
    hidden, unknown = (
        get(site.base, f"/?shop={name}&lang={tag}") for name in ("quietly-hidden.internal", "nowhere.internal")
    )
    assert hidden.status == unknown.status == 404
    assert hidden.body.replace(b"quietly-hidden", b"nowhere") == unknown.body
    assert languages()[tag].text("shop_not_found") in unknown.body.decode()


@pytest.mark.asyncio(loop_scope="session")
async def test_without_scripts_a_language_is_chosen_and_kept(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=harbour&country=DE", Screen(scripts=False))
    await page.get_by_role("link", name="Polski").click()
    await page.wait_for_url("**/?q=harbour&country=DE&lang=pl")
    await expect(page.locator("html")).to_have_attribute("lang", "pl")
    await expect(page.locator("[aria-current]")).to_have_text("Polski")
    await page.get_by_role("link", name="Harbour Lane Books").click()
    await page.wait_for_url("**/?shop=harbour-lane-books.internal&country=DE")
    for text in ("10% rabatu", "Tak, według sklepu dostarcza do tego kraju: Niemcy.", "89,00 €", "od 3 do 5 dni"):
        await expect(page.locator("#view")).to_contain_text(text)


@pytest.mark.asyncio(loop_scope="session")
async def test_with_scripts_the_shown_view_is_had_in_another_language(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    await shown(page, "start")
    await page.locator("[data-shop=shop_books]").click()
    await shown(page, "shop")
    await page.get_by_role("link", name="Deutsch").click()
    await page.wait_for_url("**/?shop=harbour-lane-books.internal&lang=de")
    main = await shown(page, "shop")
    await expect(main).to_contain_text("7 Codes bekannt: 3 können funktionieren")
    await page.goto(site.base)
    await shown(page, "start")
    await expect(page.locator("h1")).to_have_text("Den Shop kennen, bevor du kaufst")
    await expect(page.locator("#country option").nth(1)).to_have_text("Afghanistan")
    await typed(page, "zzqq")
    await expect(page.locator("#status")).to_have_text("Keine Vorschläge.")


@pytest.mark.rule("A3", "F22")
@pytest.mark.asyncio(loop_scope="session")
async def test_categories_have_the_names_that_the_catalogue_states(serve: Serve, visitor: Visitor) -> None:
    base = serve(
        [shop("Moss & Fern", "moss.internal", categories=[("garden", "Plants"), ("light", "Lamps")])], categories=GARDEN
    )
    names = {
        tag: [found["category"] for found in post(base, "/tool/list_categories", {"language": tag}).json["results"]]
        for tag in (*LANGUAGES, "de-CH", "PL", "zh-Hans-CN", "zh", "ja", "no tag")
    }
    stated = {"de": "Garten", "de-CH": "Garten", "pl": "Ogród", "PL": "Ogród", "zh-Hans-CN": "花园"}
    assert names == {
        tag: [stated.get(tag, "Plants"), "Lighting" if tag == "en" else "Lamps"] for tag in names
    }  # fmt: skip
    assert [found["category"] for found in post(base, "/tool/list_categories", {}).json["results"]] == [
        "Plants",
        "Lamps",
    ]

    for path in ("/?lang=pl", "/?shop=moss.internal", "/?q=moss", "/?category=garden", "/?q=ogród"):
        page, _ = await visitor.arrive(base, DESKTOP)
        await page.goto(f"{base}{path}{'&' if '?' in path else '?'}lang=pl")
        await expect(page.locator("#view")).to_contain_text("Ogród")
        await shown(page, str(await page.locator("#view").get_attribute("data-view")))
        await expect(page.locator("#view")).to_contain_text("Ogród")
        await expect(page.locator("#view")).not_to_contain_text("Plants")
    assert "Ogród" in get(base, "/?category=garden&lang=pl").body.decode()


# What the page's script has of countries, and how it writes numbers, amounts and days.
COUNTRIES: Final = "all => Object.fromEntries(all.map((one) => [one.value, one.text]).filter(([code]) => code))"
WRITTEN: Final = """(locale) => {
    const numbers = new Intl.NumberFormat(locale, { useGrouping: "always" });
    const style = { style: "currency", currency: "EUR", maximumFractionDigits: 8, useGrouping: "always" };
    const money = new Intl.NumberFormat(locale, style);
    const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" });
    return [
        [0, 999, 1234, 1234567].map((number) => numbers.format(number)),
        ["89.00", "1234.5", "0.125"].map((amount) => money.format(amount)),
        Array.from({ length: 12 }, (_, month) => day.format(Date.UTC(2026, month, 5))),
    ];
}"""


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("tag", LANGUAGES)
async def test_the_script_writes_as_the_server_does_and_the_hint_in_the_field_is_not_cut_on_a_phone(
    site: Site, visitor: Visitor, tag: str
) -> None:
    language = languages()[tag]
    page, _ = await visitor.visit(site.base, f"/?lang={tag}", PHONE)
    await shown(page, "start")
    field = page.locator("#search")
    await field.evaluate("field => { field.value = field.placeholder; }")
    assert await field.evaluate("field => field.scrollWidth <= field.clientWidth")
    countries = await page.locator("#country option").evaluate_all(COUNTRIES)
    assert countries == {code: language.market(code) for code in sorted(COUNTRY_CODES)}
    numbers, money, days = await page.evaluate(WRITTEN, "en-GB" if tag == "en" else tag)
    assert numbers == [language.number(number) for number in (0, 999, 1234, 1_234_567)]
    prices = [{"amount": amount, "currency": "EUR"} for amount in ("89.00", "1234.5", "0.125")]
    assert money == [language.money(price) for price in prices]
    assert days == [language.day(f"2026-{month:02}-05T12:00:00Z") for month in range(1, 13)]
