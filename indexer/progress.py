"""Shows progress on standard error: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

_INTERVAL_S: Final = 5.0
# A stage of unknown length that took less time prints no line.
_SHORTEST_S: Final = 1.0

Advance = Callable[[int], None]


@contextmanager
def stage(title: str, total: int | None = None, unit: str = "", stream: TextIO | None = None) -> Iterator[Advance]:
    """Show one stage of the work, on standard error unless `stream` is given. Stages may be nested.

    `total` is the amount of work in `unit`, such as bytes or shops; None where it is not known. Yields a function to
    call with the work done since the last call; 0 shows that the work goes on.
    """
    stream = stream or sys.stderr
    if stream.isatty():
        with _bar(stream, bounded=total is not None) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.advance(task, done)
    else:
        yield from _lines(title, total, unit, stream)


def _bar(stream: TextIO, *, bounded: bool) -> "Progress":
    # Imported on a terminal only: a tenth of a second of each start.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(file=stream)
    text, bar = TextColumn("{task.description}"), BarColumn()
    if not bounded:
        return Progress(text, bar, TimeElapsedColumn(), console=console)
    return Progress(text, bar, TaskProgressColumn(show_speed=True), TimeRemainingColumn(), console=console)


def _lines(title: str, total: int | None, unit: str, stream: TextIO) -> Iterator[Advance]:
    started = printed = time.monotonic()
    done = 0

    def advance(more: int) -> None:
        nonlocal done, printed
        done += more
        now = time.monotonic()
        if now - printed < _INTERVAL_S:
            return
        printed = now
        if total is None:
            print(f"{title}: for {now - started:.0f} s", file=stream, flush=True)
            return
        rate = done / (now - started)
        remaining = (total - done) / rate if rate else 0.0
        print(f"{title}: {done:,} of {total:,} {unit}, {rate:,.0f}/s, {remaining:.0f} s left", file=stream, flush=True)

    yield advance
    took = time.monotonic() - started
    if total is not None:
        print(f"{title}: {done:,} {unit} in {took:.1f} s", file=stream, flush=True)
    elif took >= _SHORTEST_S:
        print(f"{title}: done in {took:.1f} s", file=stream, flush=True)
