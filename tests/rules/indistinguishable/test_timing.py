"""Times distinguish a shop under review from an unknown one no better than chance; a planted delay is found.

The short form of `python -m bench.timing`: with 600 calls of each side chance alone moves the AUC by 0.017 (one
standard deviation), so the bounds are wide, and a machine with other work to do does not break them.
"""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from bench.timing import TOOLS, World, make_world, measure

CALLS: Final = 600
BOUND: Final = 0.1
PLANTED_SECONDS: Final = 0.0003


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("timing"))


@pytest.mark.slow
@pytest.mark.rule("V2")
def test_times_do_not_distinguish_a_shop_under_review_from_an_unknown_one(world: World, tmp_path: Path) -> None:
    found = {timing.tool: timing.auc for timing in asyncio.run(measure(world, tmp_path, CALLS))}
    assert set(found) == set(TOOLS)
    assert {tool: value for tool, value in found.items() if abs(value - 0.5) > BOUND} == {}


@pytest.mark.slow
def test_a_planted_delay_of_a_third_of_a_millisecond_is_found_in_every_tool(world: World, tmp_path: Path) -> None:
    found = {timing.tool: timing.auc for timing in asyncio.run(measure(world, tmp_path, CALLS, PLANTED_SECONDS))}
    assert set(found) == set(TOOLS)
    assert {tool: value for tool, value in found.items() if value < 0.5 + 2 * BOUND} == {}
