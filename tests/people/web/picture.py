"""The pictures of the page in the docs: `python -m tests.people.web.picture [FOLDER]`, or `make picture`.

A clock that stands still and a page at rest: the same machine takes the same picture again. They are of the sample, but
for the README's, which is of the real shops that `make open-catalogue` has made.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.async_api import Browser, Page

from tests.people.web.browser import Screen, Visitor, chromium
from tests.people.web.steps import section, shown, sign_in, typed
from tests.support.sample import SampleService, sample_service
from tests.support.served import get, until

PICTURES: Final = Path(__file__).parents[3] / "docs" / "pictures"
_REAL_SHOPS: Final = Path(__file__).parents[3] / "var" / "open-catalogue"
_TAKEN: Final = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
_OPENING_S: Final = 60.0
_SHOP: Final = "/?shop=kiefernhaus.internal&country=DE"


@dataclass(frozen=True, slots=True)
class Picture:
    screen: Screen
    prepare: Callable[[Page, SampleService], Awaitable[None]]


async def _typing(page: Page, _: SampleService) -> None:
    await typed(page, "co")
    await page.locator("#search").press("ArrowDown")


async def _typing_of_real_shops(page: Page, _: SampleService) -> None:
    await typed(page, "addidas")
    await page.locator("#search").press("ArrowDown")


async def _whole_shop(page: Page, service: SampleService) -> None:
    await sign_in(page, service.token)
    await page.goto(f"{service.base}{_SHOP}")
    await shown(page, "shop")
    await section(page, "trust", "ok")


_README: Final = "page-light.png"
_SCREEN: Final = Screen(1280, 800, still=True)
_OF_REAL_SHOPS: Final = {_README: Picture(_SCREEN, _typing_of_real_shops)}
_FILES: Final[Mapping[str, Picture]] = {
    _README: Picture(_SCREEN, _typing),
    "page-dark.png": Picture(Screen(1280, 1160, dark=True, still=True), _whole_shop),
    "phone.png": Picture(Screen(390, 844, still=True, touch=True), _whole_shop),
}


async def take(
    browser: Browser, service: SampleService, folder: Path, pictures: Mapping[str, Picture] = _FILES
) -> list[Path]:
    """Take pictures of a running service, all those of the sample if none are named; returns their files."""
    folder.mkdir(parents=True, exist_ok=True)
    visitor = Visitor(browser)
    for name, picture in pictures.items():
        page, _ = await visitor.arrive(service.base, picture.screen)
        await page.clock.set_fixed_time(_TAKEN)
        await page.goto(service.base)
        await shown(page, "start")
        await picture.prepare(page, service)
        await page.screenshot(path=folder / name)
    if wrong := await visitor.leave():
        raise RuntimeError("; ".join(wrong))
    return [folder / name for name in pictures]


async def _taken_alone(service: SampleService, folder: Path, pictures: Mapping[str, Picture]) -> None:
    async with chromium() as browser:
        for path in await take(browser, service, folder, pictures):
            print(path)  # noqa: T201 - what a command prints is its answer


def main() -> int:
    """Serve the catalogues and take the pictures; prints where they are, and which is missing."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    of_sample = {name: picture for name, picture in _FILES.items() if name != _README}
    with TemporaryDirectory() as scratch, sample_service(Path(scratch)) as service:
        asyncio.run(_taken_alone(service, folder, of_sample))
    if not _REAL_SHOPS.is_dir():
        print(f"{_README} was not taken: make open-catalogue comes first", file=sys.stderr)  # noqa: T201 - for people
        return 1
    sources = _REAL_SHOPS / "SOURCES.md"
    with TemporaryDirectory() as scratch, sample_service(Path(scratch), _REAL_SHOPS, site_sources=sources) as service:
        base = service.base
        until(lambda: get(base, "/ready").status, lambda status: status == HTTPStatus.OK, _OPENING_S)
        asyncio.run(_taken_alone(service, folder, _OF_REAL_SHOPS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
