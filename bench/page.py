"""The page in the browser: `python -m bench.page --shops 100000`; how soon it is there, how soon a key is answered.

A key press counts from the moment the browser gives it to the page until the answer to it is in the document, and until
the next frame, with which it is seen. The part that the page waits by itself, so that fast typing asks less often, is
told apart. No answers are kept in the service's memory: each is searched for.
"""

import argparse
import asyncio
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.async_api import Browser, Page

from bench.built_indices import Shops
from bench.invented import invented_shops
from index_mappings.text import fold
from tests.people.web.browser import Visitor, chromium
from tests.people.web.steps import shown
from tests.processes.load.serving import serving

_SEED: Final = 20_261_125
_WELL_KNOWN: Final = 2_000
_LONGEST: Final = 8
_ERRORS: Final = 0.2
_PAUSE_MS: Final = 150.0
_MANY: Final = 1_000_000_000
_SETTINGS: Final = {
    "QUOTA_ANONYMOUS": f'{{"reads": {_MANY}, "suggest": {_MANY}, "reports": 0}}',
    "SUGGEST_CACHE_MB": "0",
    "DRAIN_SECONDS": "0",
}
_PAINTS: Final = """window.paints = [];
new PerformanceObserver((list) => window.paints.push(...list.getEntries().map((paint) => paint.startTime)))
    .observe({ type: "largest-contentful-paint", buffered: true });"""
# The list of suggestions or the line that tells their number is filled anew by every answer.
_PRESSES: Final = """() => {
    performance.setResourceTimingBufferSize(100000);
    window.presses = [];
    addEventListener("keydown", (event) => window.presses.push({ pressed: event.timeStamp }), true);
    const filled = new MutationObserver(() => {
        const press = window.presses.at(-1);
        if (!press || press.shown !== undefined) return;
        press.shown = performance.now();
        const asked = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/suggest?")).at(-1);
        press.asked = asked.startTime;
        requestAnimationFrame(() => requestAnimationFrame((now) => { press.seen = now; }));
    });
    for (const id of ["suggestions", "status"]) filled.observe(document.getElementById(id), { childList: true });
}"""
_EMPTIED: Final = "(field) => { field.value = ''; field.dispatchEvent(new Event('input')); }"
_ANSWERED: Final = "(count) => window.presses.length === count && window.presses.at(-1).seen !== undefined"


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds of many key presses: their middle, and what one in twenty is above."""

    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured; times in milliseconds.

    Attributes:
        paints: the largest contentful paint of each load, all cold: no cache, no connection.
        presses: how many key presses were measured.
        answered: from the key press until its answer is in the document.
        seen: from the key press until the frame with the answer has begun.
        held: of that, what passed before the page asked.
    """

    paints: tuple[float, ...]
    presses: int
    answered: Spread
    seen: Spread
    held: Spread


async def measured(browser: Browser, base: str, words: Sequence[str], loads: int, pause_ms: float) -> Figures:
    """Look at a running service.

    Args:
        browser: that runs.
        base: the service's URL.
        words: what is typed, one after the other, key by key.
        loads: how often the page is loaded for its paint.
        pause_ms: between an answer and the next key, in milliseconds.

    Raises:
        RuntimeError: the page complained.
    """
    visitor = Visitor(browser)
    paints = [await _paint(visitor, base) for _ in range(loads)]
    page, _ = await visitor.visit(base)
    await shown(page, "start")
    presses = await _typed(page, words, pause_ms)
    if wrong := await visitor.leave():
        raise RuntimeError("; ".join(wrong))
    return Figures(
        tuple(paints),
        len(presses),
        _spread([press["shown"] - press["pressed"] for press in presses]),
        _spread([press["seen"] - press["pressed"] for press in presses]),
        _spread([max(0.0, press["asked"] - press["pressed"]) for press in presses]),
    )


def words_of(count: int, wanted: int) -> list[str]:
    """Beginnings of names of the best known shops, in plain letters; in one of five, two are swapped."""
    chance = random.Random(_SEED)
    names = [
        fold(shop["name"]) for shop in islice(invented_shops(count), _WELL_KNOWN) if shop["visibility"] == "public"
    ]
    words = []
    for name in chance.choices(names, k=wanted):
        text = name[:_LONGEST].strip()
        if len(text) > 2 and chance.random() < _ERRORS:
            at = chance.randrange(len(text) - 1)
            text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        words.append(text)
    return words


def told(shops: int, figures: Figures) -> str:
    """The figures as lines of a page."""
    paints = sorted(figures.paints)
    rows = [
        ("a key press until its answer is in the document", figures.answered),
        ("a key press until the frame that shows it", figures.seen),
        ("of it, until the page asked", figures.held),
    ]
    head = (
        f"{shops:,} shops; largest contentful paint of {len(paints)} cold loads: best {paints[0]:.0f} ms, median "
        f"{statistics.median(paints):.0f} ms; {figures.presses} key presses:"
    )
    lines = [
        head,
        "",
        "| ms | median | p95 |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *(f"| {name} | {spread.median:.1f} | {spread.p95:.1f} |" for name, spread in rows)])


async def _paint(visitor: Visitor, base: str) -> float:
    page, _ = await visitor.arrive(base)
    await page.add_init_script(_PAINTS)
    await page.goto(base)
    await shown(page, "start")
    await page.wait_for_function("window.paints.length > 0")
    await page.wait_for_timeout(200)
    paint: float = await page.evaluate("window.paints.at(-1)")
    await page.context.close()
    return paint


async def _typed(page: Page, words: Sequence[str], pause_ms: float) -> list[dict[str, float]]:
    await page.evaluate(_PRESSES)
    search = page.locator("#search")
    await search.focus()
    count = 0
    for word in words:
        for key in word:
            await page.keyboard.press("Space" if key == " " else key)
            count += 1
            await page.wait_for_function(_ANSWERED, arg=count)
            await page.wait_for_timeout(pause_ms)
        await search.evaluate(_EMPTIED)  # without a key
    presses: list[dict[str, float]] = await page.evaluate("window.presses")
    return presses


def _spread(times: Sequence[float]) -> Spread:
    return Spread(statistics.median(times), statistics.quantiles(times, n=20)[-1])


async def _over(index: Path, shops: int, given: argparse.Namespace) -> Figures:
    settings = {"ENGINE": "embedded", "DATA_DIR": str(index), **_SETTINGS}
    with TemporaryDirectory() as scratch, serving(Path(scratch), settings) as service:
        async with chromium() as browser:
            return await measured(browser, service.base, words_of(shops, given.words), given.loads, _PAUSE_MS)


def main() -> int:
    """Build where needed, measure and print."""
    given = _options()
    with TemporaryDirectory() as scratch:
        shops = Shops(given.directory or Path(scratch), given.shops)
        with shops.embedded() as built_index:
            figures = asyncio.run(_over(Path(built_index.settings["data_dir"]), given.shops, given))
    print(told(given.shops, figures))  # noqa: T201 - what a command prints is its answer
    return 0


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=100_000, help="how many invented shops")
    options.add_argument("--loads", type=int, default=5, help="cold loads for the largest paint")
    options.add_argument("--words", type=int, default=40, help="how many beginnings of names are typed")
    options.add_argument("--directory", type=Path, help="where the index is kept for later runs; removed without")
    return options.parse_args()


if __name__ == "__main__":
    sys.exit(main())
