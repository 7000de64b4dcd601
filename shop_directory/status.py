"""The command `shop-directory status`: what the sides report, by entry points, so that no module imports both."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from shop_directory.settings.commands import WHERE, DataDirOption, EngineOption, ExitCode, JsonOption, end_command

GROUP: Final = "shop_directory.status"
# The gravest first: its code is that of the command.
_GRAVEST: Final = (ExitCode.UNAVAILABLE, ExitCode.INCOMPLETE, ExitCode.BAD_INPUT)
_LEAST_FREE: Final = 0.05
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Asked:
    """The options: where the index is, and the URL of a running service."""

    engine: str | None
    data_dir: Path | None
    state_dir: Path | None
    url: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """The state of one part: as lines for people, as JSON, and what is wrong with it."""

    name: str
    lines: tuple[str, ...]
    facts: object
    problems: tuple[tuple[ExitCode, str], ...] = ()


Report = Callable[[Asked], Iterable[Section]]


def status(
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir",
            show_default="alongside the embedded index",
            help=r"The directory of the indexer's state. \[env: SHOP_DIRECTORY_STATE_DIR]",
            rich_help_panel=WHERE,
        ),
    ] = None,
    *,
    url: Annotated[
        str | None,
        typer.Option("--url", help="A running service, to ask it as well, with SHOP_DIRECTORY_OPS_KEY if that is set."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show on one screen how the directory is, and what is wrong.

    The live generation and its age, the follower, rows refused in the last
    seven days and records that the build skipped, by reason, hidden shops,
    missing changes, waiting re-checks and free disk; of a service that --url
    names, the calls that its quotas refused.

    Examples:
      shop-directory status
      shop-directory status --json

    Exit codes: 0 nothing is wrong, 1 nothing is live or rows were refused, 2
    wrong usage, 3 a part does not answer or its disk is full, 7 changes are
    missing.
    """
    asked = Asked(engine, data_dir, state_dir, url)
    reports: list[Report] = [found.load() for found in sorted(entry_points(group=GROUP), key=lambda one: one.name)]
    sections = [section for report in reports for section in report(asked)]
    problems = [problem for section in sections for problem in section.problems]
    code = min((code for code, _ in problems), key=_GRAVEST.index, default=ExitCode.DONE)
    if as_json:
        typer.echo(json.dumps(_as_wire(sections, problems), ensure_ascii=False))
    else:
        _show(sections)
    if code is not ExitCode.DONE:
        end_command(code, f"Wrong: {'; '.join(text for _, text in problems)}.")


def _as_wire(sections: Iterable[Section], problems: Iterable[tuple[ExitCode, str]]) -> dict[str, Any]:
    listed = [{"code": code.name.lower(), "message": text} for code, text in problems]
    return {
        **{section.name.lower().replace("-", "").replace(" ", "_"): section.facts for section in sections},
        "problems": listed,
    }


def _show(sections: Iterable[Section]) -> None:
    # They take a tenth of a second to import.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for section in sections:
        style = "bold red" if section.problems else "bold"
        table.add_row(Text(section.name, style=style), Text("\n".join(section.lines)))
    Console().print(table)


def disk(name: str, paths: Iterable[Path]) -> Section:
    """How much is free on the file systems of these paths, which need not exist yet."""
    facts, lines, problems = [], [], []
    for path in {path.stat().st_dev: path for path in map(_existing, paths)}.values():
        space = shutil.disk_usage(path)
        share = space.free / space.total if space.total else 0.0
        facts.append({"path": str(path), "free_bytes": space.free, "free_share": round(share, 3)})
        lines.append(f"{space.free / 1e9:,.1f} GB ({share:.0%}) free at {path}")
        if share < _LEAST_FREE:
            problems.append((ExitCode.UNAVAILABLE, f"the disk of {path} is {1 - share:.0%} full"))
    return Section(name, tuple(lines), facts, tuple(problems))


def _existing(path: Path) -> Path:
    path = path.absolute()
    return next(one for one in (path, *path.parents) if one.exists())


def ago(seconds: float) -> str:
    """A length of time in its two largest units: `3 h 12 min`."""
    return " ".join(_parts_of(max(0, round(seconds)))) or "0 s"


def _parts_of(seconds: int) -> Iterator[str]:
    largest = next((place for place, (_, length) in enumerate(_UNITS) if seconds >= length), len(_UNITS))
    for unit, length in _UNITS[largest : largest + 2]:
        count, seconds = divmod(seconds, length)
        if count:
            yield f"{count} {unit}"
