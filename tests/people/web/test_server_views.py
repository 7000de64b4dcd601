"""Views from the server: what a shared link shows, pages without scripts, the sitemap, the operator's house."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from playwright.async_api import expect

from service.app import create_app
from service.calls.dispatch import Dispatcher, Outcome
from service.limits.policy import QuotaClass
from service.runtime.caller import Caller
from service.settings.service import Settings
from service.settings.site import THEMES
from service.web import sitemap
from service.web.languages import Language
from service.web.site import Head, delivery, sells
from service.web.site import Site as ServedSite
from service.web.views import asked_view
from shop_directory.settings.reading import SettingsError
from tests.people.web.browser import CUT, PHONE, Screen, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import shown, sign_in, text_of, typed
from tests.people.web.test_accessible import SCREENS, assert_usable
from tests.people.web.world import BOOKS, MARKUP, SCRIPT, SHOPS, web_world
from tests.support.callers import issue
from tests.support.catalogues import coupon, policy, shipping, shop
from tests.support.sample import SampleService
from tests.support.served import get, post, served, settings_in
from tests.support.worlds import embedded_world, limited

PUBLIC_URL: Final = "https://shops.example/find"
LOGO: Final = "https://harbour-lane-books.internal/logo.svg"
HOUSE: Final[dict[str, Any]] = {
    "site_name": "Höfe & <b>Co",
    "site_tagline": 'Nearby "shops"',
    "site_imprint": "https://house.example/imprint?a=1&b=2",
    "site_contact": "mailto:hello@house.example",
    "site_token_help": "https://house.example/token",
    "site_accent": ("#7a1f5c", "#f0a6d6"),
    "site_shop_logos": True,
    "site_sitemap": True,
    "public_url": PUBLIC_URL,
}
ENGLISH: Final = Language("en")
TESTED: Final = "2026-10-18T07:30:00Z"
_DATA: Final = ("application/json", "application/ld+json")


class Page(HTMLParser):
    """What a reader of shared links sees: the title, tags of the head, links, and scripts with their texts."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.title = ""
        self.tags: dict[str, str | None] = {}
        self.links: dict[str, str | None] = {}
        self.scripts: list[tuple[str | None, str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open = ""
        self.feed(body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        self._open = tag
        if tag == "meta":
            self.tags |= {str(given[name]): given.get("content") for name in ("name", "property") if name in given}
        elif tag == "link":
            self.links[str(given["rel"])] = given["href"]
        elif tag == "script":
            self.scripts.append((given["type"], ""))

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - as the parser calls it
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "title":
            self.title += data
        elif self._open == "script":
            kind, text = self.scripts.pop()
            self.scripts.append((kind, text + data))

    def data(self, kind: str) -> Any:  # noqa: ANN401 - any JSON value
        """The JSON in the first script of a type."""
        return json.loads(next(text for found, text in self.scripts if found == kind))


def page_of(base: str, path: str, status: int = 200) -> Page:
    reply = get(base, path)
    assert (reply.status, reply.headers["content-type"]) == (status, "text/html; charset=utf-8")
    return Page(reply.body)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The world of the page in a house of its own, and with the logo of a shop."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "logo.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    (folder / "SOURCES.md").write_text("# Data: <b>Maps</b> (CC0)\n\nLicence: *all* of it.\n")
    shops = [{**one, "logo": LOGO} if one is BOOKS else one for one in SHOPS]
    settings = settings_in(
        folder,
        data_dir=web_world(folder / "world", shops),
        quota_anonymous=QuotaClass(reads=10_000, suggest=10_000, reports=0),
        site_logo=folder / "logo.svg",
        site_sources=folder / "SOURCES.md",
        **HOUSE,
    )
    with served(create_app(settings)) as base:
        yield base


@pytest.mark.rule("F18", "F21")
def test_a_link_to_a_shop_says_what_is_publicly_known_of_it(house: str) -> None:
    page = page_of(house, "/?shop=shop_books&country=DE")
    view = post(house, "/tool/get_shop", {"shop_domain": "shop_books"}).json
    assert view["logo_url"] == LOGO
    url = f"{PUBLIC_URL}/?shop=harbour-lane-books.internal"
    description = (
        "Harbour Lane Books (harbour-lane-books.internal): Books, Stationery. Sells in Germany, France. 3 codes known."
    )
    assert page.title == "Harbour Lane Books – Höfe & <b>Co"
    assert {name: text for name, text in page.tags.items() if name not in {"viewport", "theme-color"}} == {
        "description": description,
        "og:description": description,
        "og:type": "website",
        "og:site_name": "Höfe & <b>Co",
        "og:title": "Harbour Lane Books",
        "og:image": LOGO,
        "og:url": url,
        "twitter:card": "summary",
    }
    assert page.links["canonical"] == url
    assert page.data("application/ld+json") == {
        "@context": "https://schema.org",
        "@type": "OnlineStore",
        "name": view["name"],
        "alternateName": view["aliases"],
        "url": "https://harbour-lane-books.internal/",
        "areaServed": view["countries"],
        "logo": LOGO,
    }


@pytest.mark.rule("F18", "A13")
def test_linked_data_has_nothing_that_is_not_known(site: Site) -> None:
    page = page_of(site.base, "/?shop=shop_bare")
    assert page.data("application/ld+json") == {
        "@context": "https://schema.org", "@type": "OnlineStore", "name": "Moss & Fern",
        "url": "https://moss-and-fern.internal/",
    }  # fmt: skip
    assert page.tags["description"] == "Moss & Fern (moss-and-fern.internal): Garden."
    assert {"og:url", "og:image"}.isdisjoint(page.tags)


@pytest.mark.rule("A13")
def test_a_delivery_time_says_what_is_stated() -> None:
    stated = ((3, None, None), (None, 5, None), (1, 1, None), (2, 4, "soon"), (None, None, "soon"), (None, None, None))
    times = [{"min_days": least, "max_days": most, "as_stated": words} for least, most, words in stated]
    assert [delivery(ENGLISH, time) for time in (*times, None)] == [
        "at least 3 days", "at most 5 days", "1 day",
        "2 to 4 days, <q><bdi>soon</bdi></q>", "<q><bdi>soon</bdi></q>", "", "",
    ]  # fmt: skip


def test_the_markets_of_a_shop_are_named_in_a_few_words() -> None:
    assert ENGLISH.market("EU") == "European Union"
    stated = (("WORLDWIDE",), ("DE",), ("DE", "FR", "XK"), ("DE", "FR", "XK", "AT", "CH"))
    assert [sells(ENGLISH, countries) for countries in stated] == [
        "Sells worldwide", "Sells in Germany", "Sells in Germany, France, Kosovo",
        "Sells in Germany, France, Kosovo and 2 more",
    ]  # fmt: skip


@pytest.mark.rule("F18")
def test_a_link_to_a_category_names_it_and_its_shops(house: str) -> None:
    page = page_of(house, "/?category=paper")
    assert (page.title, page.tags["description"]) == ("Paper – Höfe & <b>Co", "120 shops in Paper.")
    assert page.links["canonical"] == f"{PUBLIC_URL}/?category=paper"
    data = page.data("application/ld+json")
    listed = data["mainEntity"]["itemListElement"]
    assert (data["@type"], data["name"], data["mainEntity"]["numberOfItems"], len(listed)) == (
        "CollectionPage", "Paper", 120, 20,
    )  # fmt: skip
    assert [entry["item"]["name"] for entry in listed] == [
        found["name"]
        for found in post(house, "/tool/find_shop", {"query": "", "category": "paper"}).json["results"][:20]
    ]


@pytest.mark.rule("F18")
@pytest.mark.parametrize(
    "path", ["/?q=books", "/?q=", "/?category=paper&country=DE", "/?category=paper&offset=20", "/?category=paper&q=a"]
)
def test_searches_and_parts_of_lists_are_not_indexed(house: str, path: str) -> None:
    page = page_of(house, path)
    assert (page.tags["robots"], "canonical" in page.links, "og:url" in page.tags) == ("noindex", False, False)


@pytest.mark.rule("F18")
@pytest.mark.parametrize(
    ("query_string", "asked"),
    [
        ("", {}),
        ("country=DE", {}),
        ("utm_source=x&shop=", {}),
        ("shop=a.example", {"shop_domain": "a.example", "country": None}),
        ("shop=+a.example&q=x&country=+de+", {"shop_domain": " a.example", "country": "DE"}),
        ("shop=a.example&country=de&country=AT", {"shop_domain": "a.example", "country": None}),
        ("shop=a.example&country=UK", {"shop_domain": "a.example", "country": None}),
        ("q=", {"query": ""}),
        ("q=+l%C3%A4mp+&offset=25", {"query": "lämp", "offset": 25}),
        ("q=a&offset=-1", {"query": "a", "offset": "-1"}),
        ("q=a&offset=0000000001", {"query": "a", "offset": "0000000001"}),
        ("category=b&category=a&category=b&category=+", {"query": "", "categories": ["b", "a"]}),
        ("q=a&country=de&country=at", {"query": "a", "countries": ["DE", "AT"]}),
        ("q=a&ships_to=at&include_unsettled=true", {"query": "a", "ships_to": "AT", "include_unsettled": True}),
        ("q=a&include_unsettled=true&has_code=true", {"query": "a", "has_code": True}),
    ],
)
def test_an_address_is_read_as_the_script_reads_it(query_string: str, asked: dict[str, Any]) -> None:
    listed = {
        "limit": 20, "offset": 0, "categories": None, "countries": None, "ships_to": None, "include_unsettled": False,
        "has_code": False, "facets": ["category", "country"],
    }  # fmt: skip
    expected = {**listed, **asked} if "query" in asked else asked
    assert asked_view(query_string.encode()) == expected


@pytest.mark.rule("F18", "Q2")
def test_a_view_counts_as_the_calls_that_it_makes(tmp_path: Path) -> None:
    with limited(tmp_path, quota_anonymous=QuotaClass(reads=12, suggest=2, reports=0)) as base:
        assert [get(base, path).status for path in ("/", "/?category=books", "/?shop=shop_books", "/")] == [200] * 4
        refused = get(base, "/?shop=shop_books")
        page = Page(refused.body)
        assert (refused.status, refused.headers["content-type"]) == (429, "text/html; charset=utf-8")
        assert (page.title, "retry-after" in refused.headers) == ("No answer – Shop Directory", True)
        token = issue(tmp_path / "tokens.sqlite").text
        assert get(base, "/?shop=shop_books", x_api_token=token).status == 200
        # The start page has its script all the same, which can ask again.
        start = get(base, "/")
        assert (start.status, "quota is used up" in start.body.decode()) == (200, True)


@pytest.mark.rule("F18", "Q2")
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("path", "view"),
    [("/?shop=shop_books&country=DE", "shop"), ("/?q=mill", "results"), ("/?category=paper&offset=20", "category")],
)
async def test_the_script_shows_the_answers_of_a_view_and_asks_again_only_with_a_token(
    site: Site, visitor: Visitor, path: str, view: str
) -> None:
    page, _ = await visitor.visit(site.base, path)
    # The page says how many minutes ago its data were built, which is read twice.
    await page.clock.set_fixed_time(datetime.now(UTC))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/tool/" in request.url else None)
    await page.reload()
    read = [await text_of(await shown(page, view)), await text_of(page.locator("#as-of"))]
    assert asked == []
    await page.locator(".brand").click()
    await shown(page, "start")
    await page.go_back()
    assert [await text_of(await shown(page, view)), await text_of(page.locator("#as-of"))] == read
    await sign_in(page, site.token)
    asked.clear()
    await page.reload()
    await shown(page, view)
    assert f"{site.base}/tool/{'get_shop' if view == 'shop' else 'find_shop'}" in asked


@pytest.mark.rule("F18", "C2")
def test_a_view_of_two_generations_is_made_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    called = Dispatcher.call
    generations = iter(["old"])

    async def swapped(self: Dispatcher, name: str, given: dict[str, Any], caller: Caller) -> Outcome:
        outcome = await called(self, name, given, caller)
        stamp = outcome.stamp
        older = next(generations, None) if name == "get_shop" else None
        return outcome if older is None or stamp is None else replace(outcome, stamp=replace(stamp, generation=older))

    monkeypatch.setattr(Dispatcher, "call", swapped)
    reply = get(site.base, "/?shop=shop_books")
    assert (reply.status, next(generations, None), reply.headers["x-generation"] == "old") == (200, None, False)


@pytest.mark.rule("F18", "E1")
@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/?shop=nobody", 404, "There is no such shop in the directory."),
        ("/?category=lamp", 400, "There is no such category."),
    ],
)
def test_what_is_not_there_is_said_to_people_and_not_to_programs(
    site: Site, path: str, status: int, sentence: str
) -> None:
    page = page_of(site.base, path, status)
    assert (page.title, page.tags["description"]) == ("Not in the directory – Shop Directory", sentence)
    assert b"Call " not in get(site.base, path).body


@pytest.mark.rule("F18", "C1.http")
@pytest.mark.parametrize(("path", "status"), [("/?shop=shop_books", 200), ("/?q=mill", 200), ("/?shop=nobody", 404)])
def test_a_view_is_never_kept(site: Site, path: str, status: int) -> None:
    reply = get(site.base, path)
    assert (reply.status, reply.headers["cache-control"], "etag" in reply.headers) == (status, "no-store", False)


@pytest.mark.rule("F18")
def test_what_needs_a_token_is_in_no_view(site: Site) -> None:
    measured = b"Invented Authority R3"
    trust = post(site.base, "/tool/get_trust", {"shop_domain": "shop_books"}, x_api_token=site.token)
    page = get(site.base, "/?shop=shop_books", x_api_token=site.token)
    assert (measured in trust.body, page.status, measured in page.body) == (True, 200, False)


@pytest.mark.rule("F18")
@pytest.mark.rule("M6.broader")
def test_without_a_match_the_nearest_queries_and_shops_are_the_result(house: str) -> None:
    apart = get(house, "/?q=harbour+mill").body.decode()
    assert "Closest to “<bdi>harbour mill</bdi>”" in " ".join(apart.split())
    assert '<a href="?q=harbour"><bdi>harbour</bdi></a> (1 shop)' in apart
    assert "without <q><bdi>mill</bdi></q>" in apart
    assert (
        '<a href="?q=harbour&amp;country=DE&amp;country=AT">'
        in get(house, "/?q=harbour+mill&country=DE&country=AT").body.decode()
    )
    near = get(house, "/?q=harbourlanebokos").body.decode()
    assert "Closest to “<bdi>harbourlanebokos</bdi>”" in " ".join(near.split())
    assert "<bdi>Harbour Lane Books</bdi></a>" in near


@pytest.mark.rule("F18")
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("path", "heading", "lead", "links"),
    [
        ("/?q=lumn", "Closest to “lumn”", "No shop fits exactly. These names are close to it.", ["Lumen & Larch"]),
        ("/?q=lumn&country=DE", "Closest to “lumn”", "No shop fits among those selling in Germany", ["Lumen & Larch"]),
        ("/?q=zzqqxx", "Nothing found for “zzqqxx”", "No shop in the directory fits.", []),
        ("/?q=lumen+zzqqxx+coffee", "Closest to “lumen zzqqxx coffee”", "No shop fits all of these words.", ["lumen"]),
    ],
)
async def test_what_is_closest_is_the_answer_with_and_without_scripts(
    sample: SampleService, visitor: Visitor, path: str, heading: str, lead: str, links: list[str]
) -> None:
    read = []
    for screen in (Screen(), Screen(scripts=False)):
        page, watch = await visitor.visit(sample.base, path, screen)
        await expect(page.locator("h1")).to_have_text(heading)
        await expect(page.locator(".lead")).to_contain_text(lead)
        for link in links:
            await expect(page.locator("#view").get_by_role("link", name=link, exact=True)).to_be_visible()
        read.append(await text_of(page.locator(".found")))
        assert watch.asked_for("/suggest") == []
    assert read[0].replace(" “", "").replace("”", "") == read[1].replace(" “", "").replace("”", "")


@pytest.mark.rule("F1", "F18")
def test_a_row_says_whether_its_shop_ships_to_the_chosen_country(site: Site) -> None:
    page = get(site.base, "/?q=&ships_to=FR&include_unsettled=true").body.decode()
    assert (page.count(">Ships to France</span>"), page.count("shipping to France not stated</span>")) == (1, 19)


@pytest.mark.rule("F18", "V2")
def test_a_row_says_what_is_known_of_codes_shipping_and_returns(tmp_path: Path) -> None:
    def worked(code: str, of: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
        return coupon(code, of, verification_status="verified_applied", last_verified_at=TESTED, **fields)

    shops = [shop(f"Facts {name}", f"facts-{name}.internal", id=name) for name in ("good", "late", "there", "bare")]
    shops += [shop("Facts hidden", "facts-hidden.internal", id="hidden", visibility="under_review")]
    shops += [shop(f"Facts {n:02}", f"facts-{n:02}.internal") for n in range(16)]
    data = embedded_world(
        tmp_path,
        shops,
        coupons=[
            worked("GOOD", "good", countries=["AT", "DE"]),
            worked("LATE", "late", valid_until="2024-01-01T00:00:00Z"),
            worked("THERE", "there", countries=["FR"]),
            worked("HIDDEN", "hidden"),
            coupon("UNTESTED", "bare"),
        ],
        shipping=[
            shipping("good", destinations=["DACH"]),
            shipping("late", destinations=["DE"], destinations_exhaustive=True),
            shipping("hidden", destinations=["AT"]),
        ],
        policies=[
            policy("good", "returns", category="finite", days=30),
            policy("late", "returns", category="not_permitted"),
            policy("there", "returns", category="unlimited"),
            policy("bare", "returns", category="finite"),
        ],
    )
    with served(create_app(Settings(data_dir=data))) as base:
        austria = _facts_of(get(base, "/?q=facts&country=AT").body)
        nowhere = _facts_of(get(base, "/?q=facts").body)
    assert austria == {
        "good": "Code that worked Ships to Austria Returns 30 days",
        "late": "Does not ship to Austria No returns",
        "there": "Returns at any time",
    }
    assert nowhere == {
        "good": "Code that worked Returns 30 days",
        "late": "No returns",
        "there": "Code that worked Returns at any time",
    }


def _facts_of(body: bytes) -> dict[str, str]:
    """What the rows of a page say, by the shops' ids, where they say anything."""
    rows = re.findall(r'<li data-shop="(\w+)">.*?<p class="known">(.*?)</p>', body.decode(), re.DOTALL)
    texts = {shop_id: " ".join(re.sub("<[^>]+>", " ", row).split()) for shop_id, row in rows}
    return {shop_id: text for shop_id, text in texts.items() if text}


@pytest.mark.rule("F18")
@pytest.mark.asyncio(loop_scope="session")
async def test_the_script_fills_the_rows_as_the_server_does(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?q=&country=DE")
    main = await shown(page, "results")
    known = page.locator("[data-shop=shop_books] .known")
    await expect(known).to_have_text("Code that worked Ships to Germany Returns 14 days")
    made = await text_of(main)
    assert watch.asked_for("/tool/list_coupons") == []

    await page.locator(".brand").click()
    await shown(page, "start")
    await page.go_back()
    await expect(known).to_have_text("Code that worked Ships to Germany Returns 14 days")
    assert await text_of(main) == made
    assert len(watch.asked_for("/tool/list_coupons")) == len(watch.asked_for("/tool/get_shop_policies")) == 1

    # While typing, they are not asked for; Enter asks.
    await page.locator("#search").fill("")
    await typed(page, "harbour")
    await shown(page, "results")
    assert len(watch.asked_for("/tool/list_coupons")) == 1
    await page.keyboard.press("Enter")
    await expect(known).to_have_text("Code that worked Ships to Germany Returns 14 days")
    assert len(watch.asked_for("/tool/list_coupons")) == 2


@pytest.mark.rule("F18", "Q2")
def test_a_list_without_the_facts_of_its_rows_is_whole(tmp_path: Path) -> None:
    with limited(tmp_path, quota_anonymous=QuotaClass(reads=3, suggest=1, reports=0)) as base:
        page = get(base, "/?q=harbour")
    assert (page.status, b"Harbour Lane Books" in page.body) == (200, True)


@pytest.mark.rule("F18", "Q2")
def test_a_view_without_suggestions_is_whole(tmp_path: Path) -> None:
    with limited(tmp_path, quota_anonymous=QuotaClass(reads=9, suggest=1, reports=0)) as base:
        shown = [get(base, "/?q=hrab") for _ in range(2)]
    assert [reply.status for reply in shown] == [200, 200]
    assert [b"Closest to" in reply.body for reply in shown] == [True, False]


@pytest.mark.parametrize("path", ["/?shop=shop_markup", "/?category=markup", "/?q=%3C/script%3E%3Cimg+onerror=x%3E"])
def test_texts_of_others_are_never_markup(site: Site, path: str) -> None:
    page = page_of(site.base, path)
    assert [kind for kind, _ in page.scripts if kind not in _DATA] == ["module"]
    assert [text for kind, text in page.scripts if kind in _DATA and re.search("[<>&]", text)] == []
    assert {tag for tag, _ in page.elements} & {"b", "iframe", "object", "embed", "style"} == set()
    assert [given for tag, given in page.elements if tag == "img" and given["src"] != "assets/icon.svg"] == []
    assert [name for _, given in page.elements for name in given if name.startswith("on")] == []
    assert [given["href"] for tag, given in page.elements if tag == "a" and "javascript:" in str(given["href"])] == []
    if "shop=" in path:
        assert page.data("application/ld+json")["name"] == MARKUP
        assert page.data("application/ld+json")["alternateName"] == [SCRIPT]


@pytest.mark.fast
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("screen", [Screen(scripts=False), replace(PHONE, scripts=False)])
async def test_without_scripts_shops_are_found_and_read(site: Site, visitor: Visitor, screen: Screen) -> None:
    page, _ = await visitor.visit(site.base, "/", screen)
    await expect(page.get_by_role("heading", name="Know a shop before you buy")).to_be_visible()
    await expect(page.locator("[aria-busy=true]")).to_have_count(0)
    await expect(page.locator("#country")).to_be_hidden()
    await page.locator("#search").fill("mill")
    await page.get_by_role("button", name="Search").click()
    await page.wait_for_url("**/?q=mill")
    await expect(page.locator("[data-shop]")).to_have_count(20)
    await expect(page.locator("#search")).to_have_value("mill")
    await page.get_by_role("link", name="Next").click()
    await page.wait_for_url("**/?q=mill&offset=20")

    await page.goto(f"{site.base}/?q=harbour&country=DE")
    await page.get_by_role("link", name="Harbour Lane Books").click()
    main = page.locator("#view")
    for text in (
        "WORKED-10", "10% off", "Worked in a real checkout", "Stationery", "Germany, France", "it ships to Germany",
        "Reading Lamp", "€89.00", "in stock", "price not stated", "14 days from delivery",
    ):  # fmt: skip
        await expect(main).to_contain_text(text)
    await main.get_by_role("link", name="Stationery").click()
    await page.wait_for_url("**/?category=stationery&country=DE")
    await expect(page.get_by_role("heading", name="Stationery")).to_be_visible()


@pytest.mark.rule("F20")
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
async def test_what_the_server_makes_is_accessible_in_the_colours_of_the_house(
    house: str, visitor: Visitor, screen: Screen
) -> None:
    # Axe is a script, so that only the script of the page is missing.
    page, _ = await visitor.arrive(house, screen, announced=(CUT, 404))
    await page.route("**/assets/main.js", lambda route: route.abort())
    for path in ("/?q=mill+zzqq", "/?category=paper&offset=20", "/?shop=shop_books&country=DE", "/?shop=nobody"):
        await page.goto(f"{house}{path}")
        await assert_usable(page, screen)


@pytest.mark.rule("F19")
def test_the_sitemap_has_each_public_address_once_and_no_file_is_too_long(
    house: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = [one for one in SHOPS if one["visibility"] == "public"]
    slugs = {category["slug"] for one in public for category in one["categories"]}
    expected = {
        f"{PUBLIC_URL}/",
        *(f"{PUBLIC_URL}/?category={slug}" for slug in slugs),
        *(f"{PUBLIC_URL}/?shop={one['domain']}" for one in public),
    }
    for most in (50_000, 50):
        monkeypatch.setattr(sitemap, "FILE_ADDRESSES", most)
        files = _locations(get(house, "/sitemap.xml").body)
        assert files == [f"{PUBLIC_URL}/sitemap.xml?file={n}" for n in range(1, -(-len(expected) // most) + 1)]
        listed = [_locations(get(house, url.removeprefix(PUBLIC_URL)).body) for url in files]
        assert max(map(len, listed)) <= most
        assert sorted(url for urls in listed for url in urls) == sorted(expected)
    packed = get(house, "/sitemap.xml?file=1", accept_encoding="gzip")
    assert _locations(gzip.decompress(packed.body)) == listed[0]
    assert (packed.headers["cache-control"], packed.headers["content-type"]) == ("no-store", "application/xml")
    for wrong in ("0", "99", "-1", "", "1&file=1", "x" * 1_000):
        assert get(house, f"/sitemap.xml?file={wrong}").status == 404
    assert get(house, "/robots.txt").body.decode().endswith(f"\nSitemap: {PUBLIC_URL}/sitemap.xml\n")


def _locations(document: bytes) -> list[str]:
    return [str(found.text) for found in ET.fromstring(document).iter() if found.tag.endswith("}loc")]  # noqa: S314 - our own document


@pytest.mark.rule("F19")
def test_without_the_setting_there_is_no_sitemap(site: Site) -> None:
    assert get(site.base, "/sitemap.xml").json["code"] == "not_found"
    assert b"Sitemap" not in get(site.base, "/robots.txt").body


@pytest.mark.rule("F19", "Q2")
def test_a_file_of_the_sitemap_counts_by_its_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "_ADDRESSES_PER_READ", 2)
    quota = QuotaClass(reads=4, suggest=2, reports=0)
    with limited(tmp_path, quota_anonymous=quota, site_sitemap=True, public_url=PUBLIC_URL) as base:
        # Of seven addresses, which are four reads.
        whole, refused = (get(base, path) for path in ("/sitemap.xml?file=1", "/sitemap.xml"))
        assert (whole.status, refused.status) == (200, 429)
        assert '"reads";r=0;' in whole.headers["ratelimit"]


@pytest.mark.fast
@pytest.mark.rule("F20")
@pytest.mark.parametrize("path", ["/", "/?shop=shop_books", "/?shop=nobody"])
def test_the_house_is_the_operators_own(house: str, path: str) -> None:
    page = Page(get(house, path).body)
    name = "Höfe & <b>Co"
    assert page.title.endswith(name)
    assert page.data("application/json") == {
        "name": "Höfe & <b>Co",
        "tagline": 'Nearby "shops"',
        "logos": True,
        "token": {"text": "Get a token", "url": "https://house.example/token"},
    }
    assert all(f"{escape(name)}".encode() in get(house, path).body for path in ("/widget.html", "/docs"))
    hrefs = [given["href"] for tag, given in page.elements if tag == "a"]
    assert {HOUSE["site_imprint"], HOUSE["site_contact"]} <= set(hrefs)
    assert ("img", "assets/logo") in [(tag, given.get("src")) for tag, given in page.elements]


@pytest.mark.rule("F20")
def test_the_footer_links_to_where_the_catalogue_is_from_as_plain_text(house: str, site: Site, tmp_path: Path) -> None:
    link = f'<a href="sources.txt">{escape("Data: <b>Maps</b> (CC0)")}</a>'
    assert all(link.encode() in get(house, path).body for path in ("/", "/?shop=shop_books", "/?q=mill"))
    sources = get(house, "/sources.txt")
    assert (sources.headers["content-type"], sources.body) == (
        "text/plain; charset=utf-8",
        b"# Data: <b>Maps</b> (CC0)\n\nLicence: *all* of it.",
    )
    assert get(site.base, "/sources.txt").status == 404
    assert b"sources.txt" not in get(site.base, "/").body
    for wrong in (b"", b" \n", b"\xff"):
        (tmp_path / "SOURCES.md").write_bytes(wrong)
        with pytest.raises(SettingsError, match="SITE_SOURCES is wrong"):
            Settings.load(site_sources=tmp_path / "SOURCES.md")


@pytest.mark.fast
@pytest.mark.rule("F20", "F21")
def test_a_logo_runs_nothing_and_only_the_setting_lets_pages_load_those_of_shops(house: str, site: Site) -> None:
    logo = get(house, "/assets/logo")
    assert (logo.status, logo.headers["content-type"]) == (200, "image/svg+xml")
    assert "default-src 'none'" in logo.headers["content-security-policy"]
    assert "sandbox" in logo.headers["content-security-policy"]
    assert get(site.base, "/assets/logo").status == 404
    for path in ("/", "/?shop=shop_books", "/?shop=nobody", "/?q=a"):
        with_logos, without = (get(base, path).headers["content-security-policy"] for base in (house, site.base))
        assert "img-src 'self' https:; " in with_logos
        assert with_logos.replace(" https:", "") == without
    for shows_logos in (True, False):
        head = Head("A", "B", "/", image=LOGO)
        page = ServedSite(Settings(site_shop_logos=shows_logos), ENGLISH).render("index.html", head)
        assert (LOGO.encode() in page) is shows_logos


@pytest.mark.fast
@pytest.mark.rule("F20")
def test_the_accent_is_checked_against_the_backgrounds_that_the_page_has(house: str, site: Site) -> None:
    style, plain = (get(base, "/assets/page.css").body.decode() for base in (house, site.base))
    found = re.findall(r"--paper:(#[0-9a-f]+);--surface:(#[0-9a-f]+)", plain)
    whole = [
        tuple(f"#{''.join(2 * digit for digit in text[1:])}" if len(text) == 4 else text for text in pair)
        for pair in found
    ]
    assert whole == [backgrounds for backgrounds, _ in THEMES.values()]
    assert style.startswith(plain)
    assert re.findall(r"--accent:(#[0-9a-f]+)", style.removeprefix(plain)) == list(HOUSE["site_accent"])
