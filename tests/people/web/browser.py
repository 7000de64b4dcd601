"""A real Chromium whose every visit is watched: what goes wrong unseen, goes wrong in the test.

A visit fails on an error on the console (a refusal by the content security policy is one), on an exception in the page,
on an answer or a broken connection that its test did not announce, and on a request to anybody but the service.
"""

import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    Response,
    async_playwright,
)

from tests.support.real.sources import Missing, find_chromium

# Of a request: the connection broke.
CUT: Final = 0
# The page itself gave these requests up: their answers are not awaited any more.
_GIVEN_UP: Final = "net::ERR_ABORTED"
# Chromium's own line for what `Response` and `Request` report better.
_ON_THE_NETWORK: Final = "Failed to load resource:"
_FOUND_NOWHERE: Final = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@dataclass(frozen=True, slots=True)
class Screen:
    """What a visitor looks at the page with, in CSS pixels.

    `still` asks for less motion, `touch` points with fingers, and `scripts` runs any.
    """

    width: int = 1280
    height: int = 900
    dark: bool = False
    still: bool = False
    touch: bool = False
    scripts: bool = True


DESKTOP: Final = Screen()
PHONE: Final = Screen(width=360, height=740, touch=True)


@dataclass  # without slots: Playwright keeps its own mark on each listener
class Watch:
    """What one visit said and asked for, method and address of each request in order; and what must not be.

    Only the service at `base` may be asked. `announced` are statuses from 400 up that the test is about, and `CUT` for
    connections that break.
    """

    base: str
    announced: Collection[int]
    asked: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def follow(self, context: BrowserContext) -> None:
        context.on("console", self._said)
        context.on("weberror", lambda error: self.wrong.append(f"exception: {error.error}"))
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("requestfailed", self._failed)

    def asked_for(self, path: str) -> list[str]:
        return [address for address in (line.split(" ", 1)[1] for line in self.asked) if urlsplit(address).path == path]

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith(_ON_THE_NETWORK):
            self.wrong.append(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        self.asked.append(f"{request.method} {request.url}")
        if not request.url.startswith((f"{self.base}/", "data:")):
            self.wrong.append(f"asked another server: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.announced:
            self.wrong.append(f"status {response.status}: {response.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != _GIVEN_UP and CUT not in self.announced:
            self.wrong.append(f"{request.failure}: {request.url}")


class Visitor:
    """Opens pages, each in a context of its own: no cookies, storage or cache; reports what was wrong at the end."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._open: list[tuple[BrowserContext, Watch]] = []

    async def visit(
        self, base: str, path: str = "/", screen: Screen = DESKTOP, *, announced: Collection[int] = ()
    ) -> tuple[Page, Watch]:
        """Go to an address of the service; `announced` are statuses that the test is about, and `CUT`."""
        page, watch = await self.arrive(base, screen, announced=announced)
        await page.goto(f"{base}{path}")
        return page, watch

    async def arrive(
        self, base: str, screen: Screen = DESKTOP, *, announced: Collection[int] = ()
    ) -> tuple[Page, Watch]:
        """The same without going anywhere yet, for tests that put something in the way first."""
        context = await self._browser.new_context(
            viewport={"width": screen.width, "height": screen.height},
            color_scheme="dark" if screen.dark else "light",
            reduced_motion="reduce" if screen.still else "no-preference",
            has_touch=screen.touch,
            is_mobile=screen.touch,
            java_script_enabled=screen.scripts,
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(10_000)
        watch = Watch(base, announced)
        watch.follow(context)
        self._open.append((context, watch))
        return await context.new_page(), watch

    async def leave(self) -> list[str]:
        """Close everything; returns what was wrong."""
        wrong: list[str] = []
        while self._open:
            context, watch = self._open.pop()
            try:
                await context.close()
            except Error as error:
                wrong.append(f"could not be closed: {error}")
            wrong += watch.wrong
        return wrong


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The installed Chromium, running; it finds no host but this machine."""
    found = find_chromium()
    if isinstance(found, Missing):
        raise RuntimeError(found.reason)  # noqa: TRY004 - no argument has a wrong type
    # Its own sandbox cannot be had by root, which is what a container usually runs as.
    unconfined = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found,
            args=[
                *unconfined,
                _FOUND_NOWHERE,
                "--disable-gpu",
                "--font-render-hinting=none",
                "--disable-partial-raster",
            ],
        )
        try:
            yield browser
        finally:
            await browser.close()
