"""The pictures of the page in the docs: `python -m tests.people.web.picture [FOLDER]`, or `make picture`.

The sample catalogue, a clock that stands still and a page at rest: the same machine takes the same picture again.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.async_api import Browser, Page

from tests.people.web.browser import Screen, Visitor, chromium
from tests.people.web.steps import section, shown, sign_in, typed
from tests.support.sample import SampleService, sample_service

PICTURES: Final = Path(__file__).parents[3] / "docs" / "pictures"
_TAKEN: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
_SHOP: Final = "/?shop=kiefernhaus.internal&country=DE"


@dataclass(frozen=True, slots=True)
class Picture:
    screen: Screen
    prepare: Callable[[Page, SampleService], Awaitable[None]]


async def _typing(page: Page, _: SampleService) -> None:
    await typed(page, "co")
    await page.locator("#search").press("ArrowDown")


async def _whole_shop(page: Page, service: SampleService) -> None:
    await sign_in(page, service.token)
    await page.goto(f"{service.base}{_SHOP}")
    await shown(page, "shop")
    await section(page, "trust", "ok")


_FILES: Final[Mapping[str, Picture]] = {
    "page-light.png": Picture(Screen(1280, 800, still=True), _typing),
    "page-dark.png": Picture(Screen(1280, 1160, dark=True, still=True), _whole_shop),
    "phone.png": Picture(Screen(390, 844, still=True, touch=True), _whole_shop),
}


async def take(browser: Browser, service: SampleService, folder: Path) -> list[Path]:
    """Take all pictures of a running service on the sample; returns their files."""
    folder.mkdir(parents=True, exist_ok=True)
    visitor = Visitor(browser)
    for name, picture in _FILES.items():
        page, _ = await visitor.arrive(service.base, picture.screen)
        await page.clock.set_fixed_time(_TAKEN)
        await page.goto(service.base)
        await shown(page, "start")
        await picture.prepare(page, service)
        await page.screenshot(path=folder / name)
    if wrong := await visitor.leave():
        raise RuntimeError("; ".join(wrong))
    return [folder / name for name in _FILES]


async def _taken_alone(service: SampleService, folder: Path) -> list[Path]:
    async with chromium() as browser:
        return await take(browser, service, folder)


def main() -> int:
    """Serve the sample and take the pictures; prints where they are."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    with TemporaryDirectory() as scratch, sample_service(Path(scratch)) as service:
        for path in asyncio.run(_taken_alone(service, folder)):
            print(path)  # noqa: T201 - what a command prints is its answer
    return 0


if __name__ == "__main__":
    sys.exit(main())
