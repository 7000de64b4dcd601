"""The pictures in the docs are made by one command, the same each time; and so the sample's first minute is."""

import struct
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.people.web.browser import Visitor
from tests.people.web.picture import PICTURES, take
from tests.people.web.steps import shown, suggested, typed
from tests.support.sample import SampleService

pytestmark = [pytest.mark.asyncio(loop_scope="session")]


def size_of(path: Path) -> tuple[int, int]:
    """Width and height, as the head of a PNG file has them."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


async def test_the_same_pictures_are_taken_again(browser: Browser, sample: SampleService, tmp_path: Path) -> None:
    first = await take(browser, sample, tmp_path / "first")
    second = await take(browser, sample, tmp_path / "second")

    assert {path.name: path.read_bytes() for path in first} == {path.name: path.read_bytes() for path in second}
    # What the letters look like is the machine's; the size is not.
    committed = {path.name: size_of(path) for path in sorted(PICTURES.glob("*.png"))}
    assert {path.name: size_of(path) for path in sorted(first)} == committed


async def test_the_first_shop_is_found_in_spite_of_a_slip(sample: SampleService, visitor: Visitor) -> None:
    page, _ = await visitor.visit(sample.base)
    await shown(page, "start")

    await typed(page, "lumn")
    await suggested(page, "Lumen & Larch")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")

    main = await shown(page, "shop")
    text = await main.inner_text()
    assert "WELCOME10" in text
    assert "An invented or private shop: its links lead nowhere." in text
    assert "Arc floor lamp, oak and brass" in text
