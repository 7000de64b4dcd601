"""The watch over each visit: whatever may go wrong without being seen is reported."""

import pytest
from playwright.async_api import Browser

from tests.people.web.browser import CUT, Visitor
from tests.people.web.conftest import Site

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

STRICT = {"content-security-policy": "default-src 'none'; img-src data:; script-src 'self'"}


async def left(browser: Browser, site: Site, document: str, announced: tuple[int, ...] = ()) -> list[str]:
    """What is wrong after a visit to a page of our own instead of the service's."""
    visitor = Visitor(browser)
    page, _ = await visitor.arrive(site.base, announced=announced)
    await page.route("**/made-up", lambda route: route.fulfill(body=document, content_type="text/html", headers=STRICT))
    await page.goto(f"{site.base}/made-up")
    await page.wait_for_timeout(100)
    return await visitor.leave()


async def test_a_quiet_page_is_not_complained_of(browser: Browser, site: Site) -> None:
    assert await left(browser, site, "<!doctype html><link rel=icon href='data:,'><p>Quiet") == []


async def test_what_the_policy_refuses_is_reported(browser: Browser, site: Site) -> None:
    (wrong,) = await left(browser, site, "<!doctype html><link rel=icon href='data:,'><script>1</script>")

    assert wrong.startswith("console error: ")
    assert "script-src" in wrong


async def test_an_unexpected_answer_is_reported(browser: Browser, site: Site) -> None:
    document = "<!doctype html><link rel=icon href='data:,'><script src='/nowhere.js'></script>"

    assert f"status 404: {site.base}/nowhere.js" in await left(browser, site, document)
    announced = await left(browser, site, document, (404,))
    # Without the address, whose port may contain the number.
    assert not any("404" in wrong.replace(site.base, "") for wrong in announced)


async def test_exceptions_and_other_origins_are_reported(browser: Browser, site: Site) -> None:
    visitor = Visitor(browser)
    page, watch = await visitor.arrive(site.base)
    await page.goto(f"{site.base}/health")
    await page.evaluate("setTimeout(() => { throw new Error('lost') }); 1")
    await page.wait_for_timeout(50)
    stranger = await visitor.arrive(site.base, announced=(CUT,))
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        await stranger[0].goto("http://another.invalid/")

    wrong = await visitor.leave()

    assert watch.asked_for("/health") == [f"{site.base}/health"]
    assert any(fault.startswith("exception: ") and "lost" in fault for fault in wrong)
    assert "asked another server: http://another.invalid/" in wrong
