"""A run as tables: `python -m bench.typeahead.report docs/performance.json docs/performance.md [docs/performance.png]`.

The tables are written between two markers of the page. All of it is computed from the stored rounds.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.typeahead.chart import draw
from bench.typeahead.findings import findings
from bench.typeahead.results import Claim, Report, Result, Size, read
from bench.typeahead.system import Role

BEGIN: Final = "<!-- made by bench.typeahead.report: begin -->"
END: Final = "<!-- made by bench.typeahead.report: end -->"
_SPEED_HEAD: Final = (
    "system",
    "requests/s",
    "of bare",
    "processor µs a request",
    "of it the HTTP server",
    "one caller p50 / p99 ms",
    "half load, even, p50 / p99 ms",
    "half load, by chance, p50 / p99 ms",
    "memory MB",
    "build s",
    "index MB",
)


def page(report: Report) -> str:
    """All that stands between the markers, as Markdown."""
    machine = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    settings = ", ".join(f"{name} {value}" for name, value in report.settings.items())
    seeds = ", ".join(f"{name} {value}" for name, value in report.seeds.items())
    measured = (
        f"Measured {report.made_at}, commit {(report.commit or 'unknown')[:12]}. Machine: {machine}. Run: {settings}. "
    )
    parts = [f"{measured}Seeds: {seeds}. Each figure is the best of its rounds; all rounds are in `performance.json`."]
    for size in report.sizes:
        parts += _size(size)
    goals = list(findings(report))
    missed = [f"* {line}" for line in goals if not line.startswith("HELD")]
    held = f"{len(goals) - len(missed)} of {len(goals)} goals are held."
    parts += ["### Goals", f"{held} The others:" if missed else held, *missed]
    for title, claims in report.extra.items():
        parts += [f"### {title}", table(("figure", "value", "at most", "held"), map(_claim, claims))]
    return "\n\n".join(_together(parts))


def put(document: str, between: str) -> str:
    """A document with other text between its markers."""
    before, began, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not began or not ended or BEGIN in rest or END in after:
        raise ValueError(f"the page needs one line {BEGIN} and after it one line {END}")
    return f"{before}{BEGIN}\n\n{between}\n\n{END}{after}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _size(size: Size) -> Iterator[str]:
    made = f"{size.shops:,} invented ones"
    made += f" with the development shops among them ({size.lines:,} in all)" if size.mixed else ", no development data"
    yield f"### {size.shops:,} shops"
    yield f"Shops: {made}."
    yield table(_SPEED_HEAD, (_speed(one, size) for one in size.results))
    if judged := size.judged():
        yield "Success@8, and success@1 behind it; keystrokes until the target is shown, on average:"
        yield _quality(judged)
    for left, why in ((size.absent, "not on this machine"), (size.failed, "FAILED")):
        yield from (f"**{one.name}** {why}: {one.why.splitlines()[0]}" for one in left)
    about = [(one.name, one.version, one.about, f"{one.body_bytes:,.0f}") for one in size.results]
    yield table(("system", "versions", "how it is set up", "bytes a body"), about)


def _speed(result: Result, size: Size) -> Sequence[str]:
    bare = size.of(Role.BARE)
    share = f"{result.per_second / bare[0].per_second:.2f}" if bare else "-"
    even, chance = result.calmest(lambda one: one.even), result.calmest(lambda one: one.poisson)
    return (
        f"**{result.name}**" if result.role is Role.OURS else result.name,
        f"{result.per_second:,.0f}",
        share,
        f"{result.lowest(lambda one: one.cpu_us):,.0f}",
        f"{result.lowest(lambda one: one.server_cpu_us):,.0f}",
        _times(result.lowest(lambda one: one.p50_us), result.lowest(lambda one: one.p99_us)),
        _times(even.p50_us, even.p99_us),
        _times(chance.p50_us, chance.p99_us),
        f"{result.memory.pss_mb:,.0f}",
        f"{result.built.seconds:,.1f}",
        f"{result.built.index_mb:,.1f}",
    )


def _claim(claim: Claim) -> Sequence[str]:
    if claim.at_most is None:
        return claim.title, f"{claim.value:,.2f}", "-", "-"
    held = "yes" if claim.value <= claim.at_most else "**no**"
    return claim.title, f"{claim.value:,.2f}", f"{claim.at_most:g}", held


def _times(p50_us: float, p99_us: float) -> str:
    return f"{p50_us / 1000:.2f} / {p99_us / 1000:.2f}"


def _quality(judged: Sequence[tuple[str, Result]]) -> str:
    """Classes down, systems across."""
    qualities = [one.quality for _, one in judged if one.quality is not None]
    names = dict.fromkeys(name for quality in qualities for name in quality.classes)
    rows = []
    for name in names:
        classes = [quality.classes.get(name) for quality in qualities]
        rows.append([name, *("-" if one is None else f"{one.success_8:.3f} ({one.success_1:.3f})" for one in classes)])
    rows.append(["keystrokes", *(f"{quality.keystrokes:.2f}" for quality in qualities)])
    return table(["class", *(title for title, _ in judged)], rows)


def _together(parts: Sequence[str]) -> Iterator[str]:
    """Points of one list without empty lines between them."""
    points: list[str] = []
    for part in (*parts, ""):
        if part.startswith("* "):
            points.append(part)
            continue
        if points:
            yield "\n".join(points)
            points = []
        if part:
            yield part


def main() -> None:
    """Write the page's tables, and the chart where one is asked for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("report", type=Path, help="the stored report of a run")
    options.add_argument("page", type=Path, help="the page with the two markers")
    options.add_argument("chart", type=Path, nargs="?", help="where the chart is put, as PNG")
    given = options.parse_args()
    report = read(given.report)
    given.page.write_text(put(given.page.read_text(encoding="utf-8"), page(report)), encoding="utf-8")
    if given.chart:
        draw(report, given.chart)


if __name__ == "__main__":
    main()
