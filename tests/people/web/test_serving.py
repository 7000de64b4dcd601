"""The page, /docs and the site as they are served: strict, small, cached, light; and their pictures."""

import re
import struct
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Locator, Page

from service.identity import ICON_PATH
from service.rest.openapi.document import openapi_document
from service.settings.service import Settings
from service.tools.registry import REGISTRY
from service.web import site as web_site
from service.web.languages import LANGUAGES, Language
from service.web.pages import page_files, page_script, site_files
from tests.people.web.browser import DESKTOP, PHONE, Screen, Visitor
from tests.people.web.conftest import Site
from tests.people.web.picture import PICTURES, take
from tests.people.web.steps import section, shown, sign_in, suggested, typed
from tests.people.web.test_accessible import axe_violations
from tests.support.sample import SampleService
from tests.support.served import ask, get

SITE: Final = web_site.Site(Settings(), Language("en"))
PAGE: Final = (page_script(SITE.language), *page_files(SITE))
FILES: Final = {file.path: file.body for file in PAGE}
SCRIPTS: Final = tuple(path for path in FILES if path.endswith(".js"))
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
MOST_BYTES_OF_THE_WIDGET: Final = 8_000
KINDS: Final = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
# What belongs to the one connection or to the form of the file.
_PASSING: Final = frozenset({"date", "x-request-id", "content-length", "etag", "connection", "vary"})
# Whatever makes markup or code of a text.
_SINKS: Final = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|setHTML|DOMParser|createContextualFragment|srcdoc"
    r"|\beval\b|\bFunction\(|javascript:|setAttribute\(\"on|\bimport\("
)


@pytest.mark.parametrize("path", FILES)
def test_each_file_of_the_page_is_served_as_what_it_is_under_a_strict_policy(site: Site, path: str) -> None:
    reply = get(site.base, path)
    headers = {name: value for name, value in reply.headers.items() if name not in _PASSING}
    kind = KINDS[path.rpartition(".")[2]]
    assert (reply.status, reply.body) == (200, FILES[path])
    assert headers == {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        # MCP hosts show the icon on pages of their own.
        "cross-origin-resource-policy": "cross-origin" if path == ICON_PATH else "same-origin",
        "content-type": kind if path == ICON_PATH else f"{kind}; charset=utf-8",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "cache-control": "no-cache",
    }


def test_the_start_page_is_served_under_a_strict_policy_and_never_kept(site: Site) -> None:
    reply = get(site.base, "/")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (reply.headers["content-security-policy"], reply.headers["cache-control"]) == (POLICY, "no-store")


@pytest.mark.rule("E1")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/assets/main.js"])
def test_the_page_is_only_read(site: Site, method: str, path: str) -> None:
    reply = ask(site.base, method, path)
    assert (reply.status, reply.json["code"], reply.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD")


@pytest.mark.rule("E1")
@pytest.mark.parametrize(
    "path", ["/index.html", "/assets", "/assets/", "/assets/../pages.py", "/assets/%2e%2e/pages.py", "//"]
)
def test_nothing_but_the_files_of_the_page_is_handed_out(site: Site, path: str) -> None:
    reply = get(site.base, path)
    assert (reply.status, reply.json["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", FILES)
def test_a_file_that_a_browser_has_is_not_sent_again(site: Site, path: str) -> None:
    tag = get(site.base, path).headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = get(site.base, path, if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
        assert again.headers["cache-control"] == "no-cache"
    assert get(site.base, path, if_none_match='"other"').body == FILES[path]


@pytest.mark.parametrize("path", SCRIPTS)
def test_no_script_makes_markup_or_code_of_a_text(path: str) -> None:
    assert _SINKS.findall(FILES[path].decode()) == []


def test_the_log_and_the_metrics_know_each_file_by_one_of_a_few_words() -> None:
    assert {file.path: file.label for file in PAGE} == dict.fromkeys(FILES, "page_asset")
    assert {file.path: file.label for file in site_files(SITE)} == {
        "/widget.js": "widget",
        "/widget.d.ts": "widget",
        "/widget.html": "widget_page",
        "/assets/example.js": "page_asset",
        "/assets/example.css": "page_asset",
        "/favicon.ico": "site_file",
        "/robots.txt": "site_file",
    }


def test_the_widget_is_small_and_may_be_loaded_by_any_page_and_is_cached_for_an_hour(site: Site) -> None:
    reply = get(site.base, "/widget.js", origin="https://elsewhere.example")
    expected = {
        "content-type": "text/javascript; charset=utf-8",
        "access-control-allow-origin": "*",
        "cross-origin-resource-policy": "cross-origin",
        "cache-control": "public, max-age=3600, stale-while-revalidate=86400",
    }
    assert (reply.status, {name: reply.headers.get(name) for name in expected}) == (200, expected)
    assert "content-encoding" not in reply.headers
    assert len(reply.body) <= MOST_BYTES_OF_THE_WIDGET
    again = get(site.base, "/widget.js", if_none_match=reply.headers["etag"])
    assert (again.status, again.body, again.headers["access-control-allow-origin"]) == (304, b"", "*")


def test_the_types_of_the_widget_are_those_of_suggestions(site: Site) -> None:
    reply = get(site.base, "/widget.d.ts")
    assert (reply.headers["content-type"], reply.headers["access-control-allow-origin"]) == (
        "text/plain; charset=utf-8", "*",
    )  # fmt: skip
    blocks = re.findall(r"interface (\w+) \{\n(.*?)\n\}", reply.body.decode(), re.DOTALL)
    fields = {name: re.findall(r"^  (\w+)\??: ", block, re.MULTILINE) for name, block in blocks}
    answer = get(site.base, "/suggest?q=books").json
    assert sorted(fields["ShopTypeaheadShop"]) == sorted(answer["shops"][0])
    assert sorted(fields["ShopTypeaheadCategory"]) == sorted(answer["categories"][0])


@pytest.mark.parametrize(
    ("path", "media_type", "beginning"),
    [
        ("/favicon.ico", "image/x-icon", b"\x00\x00\x01\x00\x01\x00\x20\x20"),
        ("/robots.txt", "text/plain; charset=utf-8", b"# The start"),
        ("/widget.html", "text/html; charset=utf-8", b"<!doctype html>"),
    ],
)
def test_other_files_of_the_site_are_for_it_alone(site: Site, path: str, media_type: str, beginning: bytes) -> None:
    reply = get(site.base, path)
    assert (reply.status, reply.headers["content-type"]) == (200, media_type)
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert reply.body.startswith(beginning)
    assert ask(site.base, "POST", path).status == 405


def test_crawlers_are_excluded_from_searches_and_the_interface(site: Site) -> None:
    lines = get(site.base, "/robots.txt").body.decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "User-agent: *",
        *(f"Disallow: {path}" for path in ("/*?q=", "/*&q=", "/suggest", "/tool/", "/mcp", "/api/")),
    ]  # fmt: skip


def test_a_link_to_the_page_has_a_title_and_a_description_to_show(site: Site) -> None:
    tags = re.findall(r'<meta ((?:(?:property|name)="[^"]+" )+)content="([^"]+)">', get(site.base, "/").body.decode())
    found = {name: content for names, content in tags for name in re.findall(r'"([^"]+)"', names)}
    assert {name for name in found if name.startswith(("og:", "twitter:"))} == {
        "og:type", "og:site_name", "og:title", "og:description", "twitter:card",
    }  # fmt: skip
    assert found["og:description"] == found["description"]


# Of the first load, results while typing included, as they are sent: compressed, which is what a visitor waits for.
MOST_BYTES = 32_000


@pytest.mark.asyncio(loop_scope="session")
async def test_all_files_of_the_page_are_small_together(site: Site, visitor: Visitor) -> None:
    page, _ = await visitor.arrive(site.base)
    answers: list[Any] = []
    page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - Playwright marks each listener
    await page.goto(site.base)
    await shown(page, "start")
    await typed(page, "harb")
    await suggested(page, "Harbour Lane Books")
    await shown(page, "results")
    await page.locator("#search").press("ArrowDown")
    await page.locator("#search").press("Enter")
    await shown(page, "shop")

    files = {answer.url.removeprefix(site.base): answer for answer in answers if "/assets/" in answer.url}
    files["/"] = answers[0]
    sizes = {path: int(answer.headers["content-length"]) for path, answer in files.items()}
    named = re.findall(r'(?:href|src)="(assets/[^"]+)"', get(site.base, "/").body.decode())

    assert {f"/{path}" for path in named} | {"/"} == set(sizes)
    assert sum(sizes.values()) < MOST_BYTES
    encoded = {path for path, answer in files.items() if answer.headers.get("content-encoding") == "gzip"}
    assert encoded == set(files) - {"/assets/icon.svg"}  # which is shorter than a kilobyte


@pytest.mark.parametrize("tag", LANGUAGES)
def test_the_first_load_is_small_in_each_language(site: Site, tag: str) -> None:
    start = get(site.base, f"/?lang={tag}").body.decode()
    assert f'<html lang="{tag}">' in start
    files = {"", *re.findall(r'(?:href|src)="(assets/[^"]+)"', start)}
    sent = [get(site.base, f"/{path or f'?lang={tag}'}", accept_encoding="gzip").body for path in files]
    assert sum(map(len, sent)) < MOST_BYTES


@pytest.mark.asyncio(loop_scope="session")
async def test_only_the_public_interface_is_asked(site: Site, visitor: Visitor) -> None:
    page, watch = await visitor.visit(site.base, "/?shop=shop_books&country=DE")
    await sign_in(page, site.token)
    await page.reload()
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
            for tool in ("find_shop", "list_categories", "get_shop", "list_coupons", "get_shop_policies", "get_trust")
        ),
    }


def size_of(path: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


@pytest.mark.asyncio(loop_scope="session")
async def test_the_same_pictures_are_taken_again(browser: Browser, sample: SampleService, tmp_path: Path) -> None:
    first = await take(browser, sample, tmp_path / "first")
    second = await take(browser, sample, tmp_path / "second")

    assert {path.name: path.read_bytes() for path in first} == {path.name: path.read_bytes() for path in second}
    # What the letters look like is the machine's; the size is not.
    committed = {path.name: size_of(path) for path in sorted(PICTURES.glob("*.png"))}
    assert {path.name: size_of(path) for path in sorted(first)} == committed


BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"


async def opened(page: Page, operation: str) -> Locator:
    # It draws every example of the operation at the same time, and other tests may have the processor.
    page.set_default_timeout(30_000)
    block = page.locator(f"#operations-tools-{operation}")
    await block.locator(".opblock-summary-control").click()
    await block.locator(".try-out__btn").click()
    return block


async def tried(block: Locator) -> tuple[str, str]:
    await block.locator(".execute").click()
    answer = block.locator(".live-responses-table tbody tr").first
    await answer.wait_for()
    status = await answer.locator(".response-col_status").inner_text()
    return status.strip(), await answer.locator(".response-col_description .highlight-code").first.inner_text()


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.rule("I84")
async def test_every_operation_is_shown(visitor: Visitor, sample: SampleService) -> None:
    page, watch = await visitor.visit(sample.base, "/docs")
    await page.locator(".opblock").first.wait_for()
    methods = await page.locator(".opblock .opblock-summary-method").all_inner_texts()
    shown = await page.locator(".opblock .opblock-summary-path").evaluate_all("all => all.map(e => e.dataset.path)")
    paths = openapi_document(REGISTRY)["paths"]
    assert [*zip(shown, methods, strict=True)] == [(path, method.upper()) for path in paths for method in paths[path]]
    assert await page.title() == "Shop Directory: the interface"
    assert await page.locator("link[rel=icon]").evaluate("icon => icon.href") == f"{sample.base}/assets/icon.svg"
    # A Chromium without windows does not load the icon.
    asked = {address.removeprefix(sample.base) for _, address in (line.split(" ", 1) for line in watch.asked)}
    assert asked - {"/assets/icon.svg"} == {
        "/docs",
        "/docs/assets/docs.css",
        "/docs/assets/docs.js",
        "/docs/assets/swagger-ui-bundle.js",
        "/docs/assets/swagger-ui.css",
        "/openapi.json",
    }


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.rule("I84")
async def test_a_tool_can_be_tried_with_each_of_its_examples(visitor: Visitor, sample: SampleService) -> None:
    page, _ = await visitor.visit(sample.base, "/docs")
    status, body = await tried(await opened(page, "find_shop"))
    assert status == "200"
    assert '"domain": "kiefernhaus.internal"' in body

    block = await opened(page, "get_shipping_policy")
    choice = block.locator(".opblock-section-request-body .examples-select select")
    assert await choice.locator("option").all_inner_texts() == [
        "Whether it ships to Austria",
        "The statement alone",
        "Nothing was gathered, which is no verdict",
        "Of several shops, one of them unknown",
    ]
    await choice.select_option(label="Nothing was gathered, which is no verdict")
    status, body = await tried(block)
    assert (status, '"collected": false' in body, '"ships_to": "unknown"' in body) == ("200", True, True)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.rule("I78", "I84")
async def test_a_token_that_is_entered_goes_into_the_header(visitor: Visitor, sample: SampleService) -> None:
    page, _ = await visitor.visit(sample.base, "/docs", announced=(401,))
    block = await opened(page, "get_trust")
    status, body = await tried(block)
    assert (status, '"code": "token_required"' in body) == ("401", True)
    await page.locator(".authorization__btn").first.wait_for()
    await page.locator(".auth-wrapper > .authorize").click()
    dialog = page.locator(".dialog-ux .auth-container").filter(has_text="x-api-token")
    await dialog.locator("input").fill(sample.token)
    await dialog.locator("button.authorize").click()
    await page.locator(".dialog-ux .close-modal").click()
    await block.locator(".btn-clear").click()
    status, body = await tried(block)
    assert (status, '"status": "signals_collected"' in body) == ("200", True)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("screen", [DESKTOP, Screen(PHONE.width, PHONE.height, dark=True, touch=True)])
async def test_axe_finds_only_what_the_markup_of_swagger_ui_brings_and_an_operation_fits(
    visitor: Visitor, sample: SampleService, screen: Screen
) -> None:
    page, _ = await visitor.visit(sample.base, "/docs", screen)
    await page.locator(".opblock").first.wait_for()
    assert await page.evaluate(BACKGROUND) == ("rgb(28, 32, 34)" if screen.dark else "rgba(0, 0, 0, 0)")
    rules = {violation.split(" at ")[0] for violation in await axe_violations(page)}
    assert rules == {"heading-order", "nested-interactive"}

    await (await opened(page, "find_shop")).locator(".responses-table").first.wait_for()
    assert await page.evaluate("document.documentElement.scrollWidth") <= screen.width
