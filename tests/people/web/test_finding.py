"""Results and failures: paging, ignored words, what may hide; each failure in a sentence with another try."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page, Route, expect

from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from tests.people.web.browser import CUT, Visitor
from tests.people.web.conftest import Site
from tests.people.web.steps import section, shown, sign_in, suggested, text_of, texts, typed
from tests.people.web.world import web_world
from tests.support.catalogues import shop
from tests.support.served import served
from tests.support.worlds import embedded_world

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


async def listed(page: Page) -> list[str]:
    found: list[str] = await page.locator("[data-shop]").evaluate_all("all => all.map(one => one.dataset.shop)")
    return found


async def test_pages_begin_at_their_top_follow_each_other_and_together_are_all(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=paper+mill")
    main = await shown(page, "results")
    await expect(main).to_contain_text("120")
    await expect(page.locator("#previous")).to_have_count(0)
    pages = [await listed(page)]

    while await page.locator("#next").count():
        first = pages[-1][0]
        await page.locator("#next").click()
        await expect(page.locator(f"[data-shop={first}]")).to_have_count(0)
        await shown(page, "results")
        await expect(page.locator("[data-shop]").first).to_be_in_viewport()
        await expect(page.locator("#view h1")).to_be_focused()
        pages.append(await listed(page))

    assert len(pages) > 2
    assert sorted(shop for shops in pages for shop in shops) == [
        f"shop_paper-mill-{at:03}_internal" for at in range(120)
    ]
    await page.locator("#previous").click()
    await expect(page.locator(f"[data-shop={pages[-2][0]}]")).to_have_count(1)
    assert await listed(page) == pages[-2]


async def test_letters_that_match_are_marked_and_words_that_were_ignored_named(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=lane+stationery+zzqqzz")
    await shown(page, "results")

    assert await texts(page.locator("[data-shop] mark")) == ["Lane", "Stationery"]

    await expect(page.locator("#notice")).to_have_text(
        "No shop matches zzqqzz: these are the shops for the other words."
    )
    assert await listed(page) == ["shop_books"]


async def test_what_may_have_been_meant_is_offered(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=hrabour")
    await shown(page, "results")
    meant = page.locator("#did-you-mean")
    await expect(meant).to_contain_text("Harbour Lane Books")

    await meant.get_by_role("link", name="Harbour Lane Books").click()

    await shown(page, "shop")


async def test_where_nothing_is_found_what_is_suggested_leads_on(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=moss+stat")
    main = await shown(page, "results")
    await expect(main).to_contain_text("No shop in the directory fits.")

    await main.get_by_role("link", name="Stationery", exact=True).click()

    await shown(page, "category")
    assert await listed(page) == ["shop_books"]


async def test_nothing_found_is_said_as_that(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?q=harbour&country=JP")
    main = await shown(page, "results")

    text = (await text_of(main)).lower()
    assert "no shop" in text
    assert "japan" in text
    assert await listed(page) == []
    await expect(page.locator("#retry")).to_have_count(0)


async def test_a_page_beyond_the_last_says_where_the_results_are(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, "/?category=paper&offset=5000")
    main = await shown(page, "category")

    assert await listed(page) == []
    await expect(main).to_contain_text("120")
    await expect(page.locator("#previous")).to_have_count(1)


@pytest.mark.rule("I15")
async def test_the_start_lists_the_categories_of_public_shops_with_their_numbers(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base)
    main = await shown(page, "start")

    for name, count in (("Paper", "120"), ("Books", "2"), ("سوق", "1")):
        await expect(main.locator("a, li").filter(has_text=name).first).to_contain_text(count)
    await expect(main).not_to_contain_text("Secrets")
    await main.get_by_text("Books", exact=True).first.click()
    await shown(page, "category")
    assert await listed(page) == ["shop_books", "shop_japanese"]


async def test_a_word_of_too_many_categories_is_said_to_show_a_part(tmp_path: Path, visitor: Visitor) -> None:
    shops = [shop(f"Maker {number}", categories=[(f"craft-{number}", f"Craft {number}")]) for number in range(60)]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        page, _ = await visitor.visit(base, "/?q=craft")
        await shown(page, "results")

        await expect(page.locator("#notice")).to_contain_text("only a part of the shops is shown")
        assert await page.locator("[data-shop]").count() > 0
        assert await visitor.leave() == []


async def test_the_numbers_of_the_filters_are_those_that_a_click_shows(tmp_path: Path, visitor: Visitor) -> None:
    shops = [
        shop("Maple One", categories=["toys", "books"], countries=["DE", "FR"]),
        shop("Maple Two", categories=["toys"], countries=["FR"]),
        shop("Maple Three", categories=["books"], countries=["WORLDWIDE"]),
        shop("Maple Four", categories=["toys"], countries=[]),
    ]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        for path in ("/?q=maple", "/?q=maple&country=DE", "/?q=maple&category=toys"):
            page, _ = await visitor.visit(base, path)
            await shown(page, "results")
            links: list[tuple[str, str]] = await page.locator("[data-filter]").evaluate_all(
                "all => all.map(one => [one.href, one.querySelector('.aside').textContent.trim()])"
            )
            counted = []
            for address, _number in links:
                await page.goto(address)
                await shown(page, "results")
                counted.append(str(len(await listed(page))))

            assert len(links) >= 2
            assert counted == [number for _, number in links]
        assert await visitor.leave() == []


async def test_a_filter_of_all_shops_shows_the_number_of_the_whole_category_and_is_set_and_removed(
    site: Site, visitor: Visitor
) -> None:
    page, _ = await visitor.visit(site.base, "/?q=")
    await shown(page, "results")
    await expect(page.locator("[data-filter=paper]")).to_have_text("Paper 120")

    await page.locator("[data-filter=books]").click()
    await page.wait_for_url("**/?category=books")
    await shown(page, "category")
    assert await listed(page) == ["shop_books", "shop_japanese"]
    await page.locator("[data-filter=FR]").click()
    await page.wait_for_url("**/?category=books&country=FR")
    await expect(page.locator("#country")).to_have_value("FR")

    await page.get_by_role("link", name="Remove the filter Books").click()
    await page.wait_for_url("**/?q=&country=FR")
    await page.get_by_role("link", name="Remove the filter France").click()
    await page.wait_for_url("**/?q=")


async def test_of_more_shops_than_one_answer_holds_no_number_is_shown(tmp_path: Path, visitor: Visitor) -> None:
    kinds = [("toys", ["DE"]), ("books", ["FR", "AT"])]
    shops = [shop(f"Maple {at}", categories=[kinds[at % 2][0]], countries=kinds[at % 2][1]) for at in range(101)]
    with served(create_app(Settings(data_dir=embedded_world(tmp_path, shops)))) as base:
        page, _ = await visitor.visit(base, "/?q=maple")
        await shown(page, "results")

        filters = page.locator("[data-filter]")
        assert sorted(await filters.all_inner_texts()) == ["Austria", "Books", "France", "Germany", "Toys"]
        await page.locator("[data-filter=books]").click()
        await expect(page.locator("h1")).to_have_text("Shops for “maple” in Books")
        # Of one category there are 50, which one answer holds.
        assert sorted(await texts(filters)) == ["Austria 50", "France 50", "Toys"]
        assert await visitor.leave() == []


NOT_KNOWN: Final = "This does not mean that there is nothing."
UNANSWERABLE: Final = "can’t answer this question as it was asked"

LIES: Final = re.compile(
    r"\b(no (shop|result|match|code|offer|suggestion)|nothing to suggest|0 (shops|codes))", re.IGNORECASE
)


async def nothing_looks_empty(page: Page) -> None:
    assert LIES.findall(await page.locator("body").inner_text()) == []


async def test_a_service_without_its_index_says_so_and_another_try_works(tmp_path: Path, visitor: Visitor) -> None:
    with served(create_app(Settings(data_dir=tmp_path / "world" / "index"))) as base:
        page, _ = await visitor.visit(base, "/?q=harbour", announced=(503,))
        main = await shown(page, "error")
        await expect(main).to_contain_text("This directory has no index yet.")
        await expect(main).to_contain_text(NOT_KNOWN)
        await nothing_looks_empty(page)

        web_world(tmp_path / "world")
        retry = page.locator("#retry")
        await expect(retry).to_be_enabled()
        await expect(retry).to_have_text("Try again")
        await retry.click()

        await shown(page, "results")
        await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")
        assert await visitor.leave() == []


async def test_a_connection_that_is_gone_is_said_and_another_key_or_try_works(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.visit(site.base, announced=(CUT,))
    await shown(page, "start")

    await page.context.set_offline(True)
    await page.locator("#search").press_sequentially("har")
    await expect(page.locator(".finder")).to_contain_text("can’t be reached")
    await expect(page.locator("#suggestions")).to_be_hidden()
    await nothing_looks_empty(page)

    await page.context.set_offline(False)
    await typed(page, "b")
    await suggested(page, "Harbour Lane Books")
    await expect(page.locator(".finder")).not_to_contain_text("can’t be reached")

    await page.context.set_offline(True)
    await page.locator("#search").fill("harbour")
    await page.locator("#search").press("Enter")
    main = await shown(page, "error")
    await expect(main).to_contain_text("can’t be reached")
    await nothing_looks_empty(page)

    await page.context.set_offline(False)
    await page.locator("#retry").click()
    await shown(page, "results")
    await expect(page.locator("[data-shop]")).to_have_attribute("data-shop", "shop_books")


async def test_a_used_up_quota_is_said_with_the_time_to_wait_and_nothing_is_asked_again_immediately(
    tmp_path: Path, visitor: Visitor
) -> None:
    quotas = QuotaClass(reads=2, suggest=2, reports=0)
    settings = Settings(data_dir=web_world(tmp_path / "world"), quota_anonymous=quotas)
    with served(create_app(settings)) as frugal:
        page, watch = await visitor.visit(frugal, "/?q=harbour", announced=(429,))
        await shown(page, "results")
        await page.locator("#search").fill("")
        for key in "moss":
            await page.locator("#search").press_sequentially(key)
            await page.wait_for_timeout(100)
        await expect(page.locator(".finder")).to_contain_text("Too many questions")
        await nothing_looks_empty(page)
        asked = len(watch.asked_for("/suggest"))
        await page.locator("#search").press_sequentially(" and fern")
        await page.wait_for_timeout(200)
        assert len(watch.asked_for("/suggest")) == asked

        for word in ("moss", "mill"):
            await page.locator("#search").fill(word)
            await page.locator("#search").press("Enter")
        main = await shown(page, "error")
        await expect(main).to_contain_text("Too many questions")
        await expect(page.locator("#retry")).to_be_disabled()
        await expect(page.locator("#retry")).to_contain_text("second")
        await nothing_looks_empty(page)
        assert await visitor.leave() == []


async def test_another_try_is_offered_once_the_time_is_over(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base, announced=(503,))
    refusals = [True]

    async def refuse_once(route: Route) -> None:
        if not refusals:
            await route.continue_()
            return
        refusals.clear()
        problem = {"type": "urn:x", "title": "x", "status": 503, "detail": "x", "code": "overloaded"}
        await route.fulfill(
            status=503,
            body=json.dumps(problem),
            headers={"retry-after": "1", "content-type": "application/problem+json"},
        )

    await page.route("**/tool/get_shop", refuse_once)
    await page.goto(f"{site.base}/?shop=shop_books")
    await shown(page, "error")
    retry = page.locator("#retry")
    await expect(retry).to_be_disabled()
    await expect(retry).to_be_enabled()
    await retry.click()

    await shown(page, "shop")


@pytest.mark.parametrize(
    ("tool", "name"), [("list_coupons", "coupons"), ("get_shipping_policy", "shipping"), ("get_trust", "trust")]
)
async def test_one_part_that_fails_leaves_the_others_standing(
    site: Site, visitor: Visitor, tool: str, name: str
) -> None:
    page, _ = await visitor.arrive(site.base, announced=(CUT,))
    await page.add_init_script(f"sessionStorage.setItem('token', {json.dumps(site.token)})")
    await page.route(f"**/tool/{tool}", lambda route: route.abort("connectionreset"), times=1)
    await page.goto(site.base)
    await sign_in(page, site.token)
    await page.goto(f"{site.base}/?shop=shop_books")

    failed = await section(page, name, "error")
    await expect(failed).to_contain_text("can’t be reached")
    for other in {"offers", "coupons", "shipping", "trust"} - {name}:
        await section(page, other, "ok")

    await failed.get_by_role("button", name="Try again").click()
    await section(page, name, "ok")


async def test_an_answer_that_is_no_answer_is_a_failure(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    await page.route("**/tool/find_shop", lambda route: route.fulfill(status=200, body="<h1>Portal</h1>"))
    await page.goto(f"{site.base}/?q=harbour")

    main = await shown(page, "error")

    assert "could not be read" in await text_of(main)
    await nothing_looks_empty(page)


async def test_a_question_that_cannot_be_answered_is_said_to_be_one(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base, announced=(400,))
    for question, heading, said in (
        ("q=harbour&country=QQ", "No answer", UNANSWERABLE),
        ("q=mill&offset=x", "No answer", UNANSWERABLE),
        ("q=mill&offset=100000", "No answer", UNANSWERABLE),
        ("category=secrets", "Not in the directory", "There is no such category."),
    ):
        await page.goto(f"{site.base}/?{question}")

        main = await shown(page, "error")

        await expect(main.locator("h1")).to_have_text(heading)
        await expect(main).to_contain_text(said)
        await expect(page.locator("#retry")).to_have_count(0)
        await nothing_looks_empty(page)
