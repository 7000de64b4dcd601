"""What is measured in the browser is measured at all; how fast it is can be measured on an idle machine only."""

import math

import pytest
from playwright.async_api import Browser

from bench.page import as_markdown, measured
from tests.people.web.conftest import Site


@pytest.mark.asyncio(loop_scope="session")
async def test_paints_and_keystrokes_are_measured(browser: Browser, site: Site) -> None:
    figures = await measured(browser, site.base, ["harb", "moss qq"], loads=2, pause_ms=0)

    assert len(figures.paints) == 2
    assert all(0 < paint < 60_000 for paint in figures.paints)
    assert figures.keystrokes == len("harb") + len("moss qq")
    assert 0 < figures.answered.median <= figures.seen.median
    for spread in (figures.answered, figures.seen, figures.held):
        assert 0 <= spread.median <= spread.p95 < math.inf
    lines = as_markdown(120, figures).splitlines()
    assert lines[0].startswith("120 shops; largest contentful paint of 2 cold loads: best ")
    assert len(lines) == 7
