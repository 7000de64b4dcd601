"""The watch over each visit: whatever may go wrong without being seen is reported, and nothing else."""

import pytest
from playwright.async_api import Browser

from tests.people.web.browser import CUT, Visitor
from tests.people.web.conftest import Site

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

QUIET = "<!doctype html><link rel=icon href='data:,'><p>Quiet"
STRICT = {"content-security-policy": "default-src 'none'; img-src data:; script-src 'self'"}


async def left(browser: Browser, site: Site, document: str, announced: tuple[int, ...] = ()) -> list[str]:
    """What is wrong after a visit to a page of our own instead of the service's."""
    visitor = Visitor(browser)
    page, _ = await visitor.arrive(site.base, announced=announced)
    await page.route("**/made-up", lambda route: route.fulfill(body=document, content_type="text/html", headers=STRICT))
    await page.goto(f"{site.base}/made-up")
    await page.evaluate("setTimeout(() => { if (document.scripts.length) throw new Error('lost') }); 1")
    await page.wait_for_timeout(100)
    return await visitor.leave()


async def test_what_goes_wrong_in_a_page_is_reported_unless_it_was_announced(browser: Browser, site: Site) -> None:
    assert await left(browser, site, QUIET) == []
    refused = await left(browser, site, f"{QUIET}<script>1</script>")
    assert any(wrong.startswith("console error: ") and "script-src" in wrong for wrong in refused)
    assert any(wrong.startswith("exception: ") and "lost" in wrong for wrong in refused)
    absent = f"{QUIET}<script src='/nowhere.js'></script>"
    assert f"status 404: {site.base}/nowhere.js" in await left(browser, site, absent)
    # Without the address, whose port may contain the number.
    assert not any("404" in wrong.replace(site.base, "") for wrong in await left(browser, site, absent, (404,)))


async def test_a_request_to_another_server_is_reported(browser: Browser, site: Site) -> None:
    visitor = Visitor(browser)
    page, _ = await visitor.arrive(site.base, announced=(CUT,))
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        await page.goto("http://another.invalid/")
    assert "asked another server: http://another.invalid/" in await visitor.leave()
