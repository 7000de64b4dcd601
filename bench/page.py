"""The page in a browser: `python -m bench.page --shops 100000`; paint times, and times from keystroke to answers.

The time of a keystroke runs from its event in the page until its suggestions, or its results, are in the document, and
until the frame that shows them. The delay by which the page debounces fast typing is reported separately. The service
caches no responses, and its quotas have no bound that is met.
"""

import argparse
import asyncio
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.async_api import Browser, Page

from bench.built_indices import Shops
from bench.invented import invented_shops
from bench.typeahead.inputs import perhaps_swapped
from index_mappings.text import fold
from tests.people.web.browser import Visitor, chromium
from tests.people.web.steps import shown
from tests.support.service_process import serving

_SEED: Final = 20_261_125
_WELL_KNOWN: Final = 2_000
_LONGEST: Final = 8
_PAUSE_MS: Final = 150.0
_PAINTS: Final = """window.paints = [];
new PerformanceObserver((list) => window.paints.push(...list.getEntries().map((paint) => paint.startTime)))
    .observe({ type: "largest-contentful-paint", buffered: true });"""
# Every response replaces the list of suggestions or the status line; results name their text in their heading.
_RECORD_KEYSTROKES: Final = """() => {
    performance.setResourceTimingBufferSize(100000);
    window.keystrokes = [];
    addEventListener("keydown", (event) => window.keystrokes.push({ pressed: event.timeStamp }), true);
    const [view, field] = ["view", "search"].map((id) => document.getElementById(id));
    const framed = (seen) => requestAnimationFrame(() => requestAnimationFrame(seen));
    const found = () => {
        const keystroke = window.keystrokes.at(-1);
        const heading = view.querySelector("h1")?.textContent ?? "";
        if (keystroke?.shown === undefined || keystroke.found !== undefined) return;
        if (view.getAttribute("aria-busy") !== "false" || !heading.includes(`“${field.value.trim()}”`)) return;
        keystroke.found = performance.now();
        framed((now) => { keystroke.foundSeen = now; });
    };
    const filled = new MutationObserver(() => {
        const keystroke = window.keystrokes.at(-1);
        if (!keystroke || keystroke.shown !== undefined) return;
        keystroke.shown = performance.now();
        const asked = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/suggest?")).at(-1);
        keystroke.asked = asked.startTime;
        framed((now) => { keystroke.seen = now; });
        found();
    });
    for (const id of ["suggestions", "status"]) filled.observe(document.getElementById(id), { childList: true });
    new MutationObserver(found).observe(view, { childList: true });
}"""
_EMPTIED: Final = "(field) => { field.value = ''; field.dispatchEvent(new Event('input')); }"
_ANSWERED: Final = "(count) => window.keystrokes.length === count && window.keystrokes.at(-1).foundSeen !== undefined"


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and 95th percentile in milliseconds."""

    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run in milliseconds: the largest contentful paint of each cold load, and times from a keystroke.

    It is `held` until the page sends the request for suggestions, `answered` when these are in the document, and `seen`
    with the frame that shows them; `found` and `found_seen` are the same of its results.
    """

    paints: tuple[float, ...]
    keystrokes: int
    answered: Spread
    seen: Spread
    held: Spread
    found: Spread
    found_seen: Spread


async def measured(browser: Browser, base: str, words: Sequence[str], loads: int, pause_ms: float) -> Figures:
    """Measure the page of a running service.

    The words are typed one after the other, key by key, with `pause_ms` milliseconds between the results and the next
    key. `loads` is the number of cold loads for the paint times.
    """
    visitor = Visitor(browser)
    paints = [await _paint(visitor, base) for _ in range(loads)]
    page, _ = await visitor.visit(base)
    await shown(page, "start")
    keystrokes = await _typed(page, words, pause_ms)
    if wrong := await visitor.leave():
        raise RuntimeError("; ".join(wrong))

    def until(moment: str) -> Spread:
        return _spread([max(0.0, keystroke[moment] - keystroke["pressed"]) for keystroke in keystrokes])

    moments = ("shown", "seen", "asked", "found", "foundSeen")
    return Figures(tuple(paints), len(keystrokes), *(until(moment) for moment in moments))


def typed_words(count: int, wanted: int) -> list[str]:
    """Prefixes of folded names of popular shops; in one of five, two letters are swapped."""
    chance = random.Random(_SEED)
    names = [
        fold(shop["name"]) for shop in islice(invented_shops(count), _WELL_KNOWN) if shop["visibility"] == "public"
    ]
    return [perhaps_swapped(chance, name[:_LONGEST].strip()) for name in chance.choices(names, k=wanted)]


def as_markdown(shops: int, figures: Figures) -> str:
    """The figures as Markdown."""
    paints = sorted(figures.paints)
    rows = [
        ("from a keystroke until its suggestions are in the document", figures.answered),
        ("from a keystroke until the frame that shows them", figures.seen),
        ("of it, until the page sends the request", figures.held),
        ("from a keystroke until its results are in the document", figures.found),
        ("from a keystroke until the frame that shows its results", figures.found_seen),
    ]
    head = (
        f"{shops:,} shops; largest contentful paint of {len(paints)} cold loads: best {paints[0]:.0f} ms, median "
        f"{statistics.median(paints):.0f} ms; {figures.keystrokes} keystrokes:"
    )
    lines = (f"| {name} | {spread.median:.1f} | {spread.p95:.1f} |" for name, spread in rows)
    return "\n".join((head, "", "| ms | median | p95 |", "|---|---|---|", *lines))


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
    await page.evaluate(_RECORD_KEYSTROKES)
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
    keystrokes: list[dict[str, float]] = await page.evaluate("window.keystrokes")
    return keystrokes


def _spread(times: Sequence[float]) -> Spread:
    return Spread(statistics.median(times), statistics.quantiles(times, n=20)[-1])


def main() -> None:
    """Build where needed, measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shops", type=int, default=100_000, help="how many invented shops")
    options.add_argument("--loads", type=int, default=5, help="cold loads for the largest paint")
    options.add_argument("--words", type=int, default=40, help="how many beginnings of names are typed")
    options.add_argument("--directory", type=Path, help="keeps the index for later runs; a temporary directory without")
    given = options.parse_args()

    async def over(base: str) -> Figures:
        async with chromium() as browser:
            return await measured(browser, base, typed_words(given.shops, given.words), given.loads, _PAUSE_MS)

    with (
        TemporaryDirectory() as scratch,
        Shops(given.directory or Path(scratch), given.shops).embedded() as built_index,
    ):
        settings = {**built_index.service, "SUGGEST_CACHE_MB": "0"}
        with serving(Path(scratch), settings) as service:
            figures = asyncio.run(over(service.base))
    print(as_markdown(given.shops, figures))  # noqa: T201 - what a command prints is its answer


if __name__ == "__main__":
    main()
