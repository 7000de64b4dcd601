"""A run as a picture: requests a second, p99 of one caller, and success@8, system by system.

Ours, peers and the bare server have a colour each; every bar is labelled with its figure. Times and throughput are on
logarithmic axes, as the slowest and the fastest are two orders of magnitude apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from bench.typeahead.findings import main_size
from bench.typeahead.results import Report, Result
from bench.typeahead.system import Role

_COLOURS: Final = {Role.BARE: "#8a8a8a", Role.OURS: "#0b6e4f", Role.PEER: "#7f9fc6"}
_TITLES: Final = {
    Role.BARE: "uvicorn alone, nothing looked up",
    Role.OURS: "Shop Directory",
    Role.PEER: "peers",
}
_LENGTHS: Final = ("3 characters", "4 characters", "5 characters", "typo in seven")
_SHADES: Final = ("#c6dbef", "#6baed6", "#2171b5", "#d6604d")
_BAR_INCHES: Final = 0.34
_GROUP_INCHES: Final = 0.8


@dataclass(frozen=True, slots=True)
class _Panel:
    """One figure of all systems; the title has its unit, and `shape` is how a value is written."""

    title: str
    values: Sequence[float]
    shape: str


def draw(report: Report, path: Path) -> None:
    """Draw the size that the report's sentences are about, as PNG."""
    size = main_size(report)
    results = sorted(size.results, key=lambda one: one.per_second)
    good = replace(size, results=tuple(results)).judged()
    panels = (
        _Panel("requests a second, one core (more is better)", [one.per_second for one in results], "{:,.0f}"),
        _Panel(
            "p99 of one caller, ms (less is better)",
            [one.lowest(lambda each: each.p99_us) / 1000 for one in results],
            "{:.2f}",
        ),
    )
    heights = [_BAR_INCHES * len(results)] * 2 + ([_GROUP_INCHES * len(good)] if good else [])
    figure = Figure(figsize=(10, sum(heights) + 1.1 * len(heights) + 0.8), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=[one + 0.6 for one in heights])[:, 0]
    for axis, panel in zip(axes, panels, strict=False):
        _bars(axis, results, panel)
    if good:
        _success(axes[2], good)
    kinds = [Patch(color=_COLOURS[role], label=_TITLES[role]) for role in Role if size.of(role)]
    axes[0].legend(handles=kinds, loc="lower right", fontsize=9)
    figure.suptitle(f"Typeahead over {size.lines:,} shops, realistic typing", fontsize=13)
    figure.savefig(path, dpi=110)


def _bars(axis: Axes, results: Sequence[Result], panel: _Panel) -> None:
    names = [one.name for one in results]
    bars = axis.barh(names, panel.values, color=[_COLOURS[one.role] for one in results], height=0.72)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    # Room for the figures behind the longest bar.
    axis.set_xlim(min(panel.values) / 2, max(panel.values) * 3)
    axis.bar_label(bars, [panel.shape.format(value) for value in panel.values], padding=4, fontsize=9)
    axis.set_title(panel.title, fontsize=11, loc="left")
    _plain(axis)


def _success(axis: Axes, judged: Sequence[tuple[str, Result]]) -> None:
    height = 0.8 / len(_LENGTHS)
    for number, (name, shade) in enumerate(zip(_LENGTHS, _SHADES, strict=True)):
        values = [_success_8(one, name) for _, one in judged]
        positions = [row + (len(_LENGTHS) / 2 - number - 0.5) * height for row in range(len(judged))]
        bars = axis.barh(positions, values, height=height * 0.92, color=shade, label=name)
        axis.bar_label(bars, [f"{value:.2f}" for value in values], padding=3, fontsize=8)
    axis.set_yticks(range(len(judged)), [title.replace(", ", "\n") for title, _ in judged])
    axis.set_xlim(0, 1.08)
    axis.margins(y=0.01)
    axis.set_title(
        "success@8: the shop that is meant is among the first eight (more is better)", fontsize=11, loc="left"
    )
    axis.legend(ncols=len(_LENGTHS), loc="upper center", bbox_to_anchor=(0.5, -0.05), fontsize=9, frameon=False)
    _plain(axis)


def _success_8(result: Result, name: str) -> float:
    quality = result.quality.classes.get(name) if result.quality else None
    return 0.0 if quality is None else quality.success_8


def _plain(axis: Axes) -> None:
    axis.grid(visible=True, axis="x", color="#e4e4e4")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
