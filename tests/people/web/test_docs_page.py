"""/docs in a real browser: all operations are there and can be tried, and only the service is asked."""

import pytest
from playwright.async_api import Locator, Page

from service.rest.openapi.document import openapi_document
from service.tools.registry import REGISTRY
from tests.people.web.browser import DESKTOP, PHONE, Screen, Visitor
from tests.people.web.test_accessible import axe_violations
from tests.support.sample import SampleService

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

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
    ]
    await choice.select_option(label="Nothing was gathered, which is no verdict")
    status, body = await tried(block)
    assert (status, '"collected": false' in body, '"ships_to": "unknown"' in body) == ("200", True, True)


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
