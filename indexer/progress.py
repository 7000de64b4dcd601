"""Progress for people: a bar on a terminal, plain lines elsewhere; always on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

_LINE_EVERY: Final = 5.0

Advance = Callable[[int], None]


@contextmanager
def stage(title: str, total: int, unit: str, stream: TextIO | None = None) -> Iterator[Advance]:
    """Show one stage of the work.

    Args:
        title: what is being done.
        total: how much there is to do, in `unit`.
        unit: such as `bytes` or `shops`.
        stream: standard error by default.

    Yields:
        A function that is told how much was done since it was last called.
    """
    stream = stream or sys.stderr
    if stream.isatty():
        with _bar(stream) as bar:
            task = bar.add_task(title, total=total)
            yield lambda done: bar.advance(task, done)
    else:
        yield from _lines(title, total, unit, stream)


def _bar(stream: TextIO) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(),
        console=Console(file=stream),
    )


def _lines(title: str, total: int, unit: str, stream: TextIO) -> Iterator[Advance]:
    started = told = time.monotonic()
    done = 0

    def advance(more: int) -> None:
        nonlocal done, told
        done += more
        now = time.monotonic()
        if now - told >= _LINE_EVERY:
            told = now
            rate = done / (now - started)
            left = (total - done) / rate if rate else 0.0
            print(f"{title}: {done:,} of {total:,} {unit}, {rate:,.0f}/s, {left:.0f} s left", file=stream, flush=True)

    yield advance
    print(f"{title}: {done:,} {unit} in {time.monotonic() - started:.1f} s", file=stream, flush=True)
