"""Shows progress on standard error: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

_INTERVAL_S: Final = 5.0
# A stage of unknown length that took less time prints no line.
_SHORTEST_S: Final = 1.0
_TICK_S: Final = 0.5
_MINUTES_FROM_S: Final = 180

T = TypeVar("T")
Advance = Callable[[int], None]


class Estimate:
    """What remains of a job, by the work that each of its stages is expected to be, in any unit and their order.

    The current stage goes on at its own pace, and the later ones at that of the job so far. A stage that begins ends
    all stages before it; one that is not expected has no estimate.
    """

    def __init__(self, work: Mapping[str, float]) -> None:
        self._later = dict(work)
        self._began = self._stage_began = time.monotonic()
        self._current = self._done = 0.0
        self._is_known = False

    def begin(self, title: str) -> None:
        """Begin a stage, and end the one before it."""
        self._done, self._current = self._done + self._current, 0.0
        self._stage_began = time.monotonic()
        self._is_known = title in self._later
        if self._is_known:
            while next(iter(self._later)) != title:
                self._later.pop(next(iter(self._later)))
            self._current = self._later.pop(title)

    def remaining(self, now: float, share: float | None) -> float | None:
        """The seconds that remain at a time of the monotonic clock; None where nothing is known yet.

        `share` is the part of the current stage that is done; None if that is unknown.
        """
        own, done = now - self._stage_began, self._done + self._current * (share or 0.0)
        if not self._is_known or not done:
            return None
        if share is None:
            pace = (self._stage_began - self._began) / done
            rest = max(0.0, self._current * pace - own)
        else:
            pace = (now - self._began) / done
            rest = own * (1 - share) / share if share else self._current * pace
        return rest + sum(self._later.values()) * pace


_ESTIMATE: Final[ContextVar[Estimate | None]] = ContextVar("estimate", default=None)


@contextmanager
def whole_job(work: Mapping[str, float]) -> Iterator[None]:
    """A job whose stages show what remains of all of it; `work` as of `Estimate`, by the stages' titles."""
    token = _ESTIMATE.set(Estimate(work))
    try:
        yield
    finally:
        _ESTIMATE.reset(token)


@contextmanager
def stage(title: str, total: int | None = None, unit: str = "", stream: TextIO | None = None) -> Iterator[Advance]:
    """Show one stage of the work, on standard error unless `stream` is given. Stages may be nested.

    `total` is the amount of work in `unit`, such as bytes or shops; None where it is not known. Yields a function to
    call with the work done since the last call; 0 shows that the work goes on.
    """
    stream = stream or sys.stderr
    if (estimate := _ESTIMATE.get()) is not None:
        estimate.begin(title)
    if stream.isatty():
        with _bar(stream, bounded=total is not None) as bar:
            task, updated = bar.add_task(title, total=total), 0.0

            def advance(done: int) -> None:
                nonlocal updated
                bar.advance(task, done)
                # Called for each record.
                if (now := time.monotonic()) - updated >= _TICK_S:
                    updated = now
                    share = None if total is None else min(1.0, bar.tasks[0].completed / max(1, total))
                    bar.update(task, description=f"{title}{_of_all(now, share)}")

            yield advance
    else:
        yield from _lines(title, total, unit, stream)


def remark(text: str) -> None:
    """Print a line on standard error, between two stages."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def in_thread(work: Callable[[], T], tick: Callable[[], None]) -> T:
    """Do work that may take minutes; `tick` is called repeatedly until it is done, and its errors are raised then."""
    with ThreadPoolExecutor(1) as thread:
        working = thread.submit(work)
        while not wait((working,), _TICK_S).done:
            tick()
        return working.result()


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


def _of_all(now: float, share: float | None) -> str:
    """What remains of the whole job, to be appended to what a stage shows; `share` as of `Estimate.remaining`."""
    estimate = _ESTIMATE.get()
    remaining = None if estimate is None else estimate.remaining(now, share)
    if remaining is None:
        return ""
    if remaining < _MINUTES_FROM_S:
        return f", the whole job {remaining:.0f} s"
    return f", the whole job {remaining / 60:.0f} min"


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
            print(f"{title}: for {now - started:.0f} s{_of_all(now, None)}", file=stream, flush=True)
            return
        rate = done / (now - started)
        remaining = (total - done) / rate if rate else 0.0
        left = f"{remaining:.0f} s left{_of_all(now, min(1.0, done / max(1, total)))}"
        print(f"{title}: {done:,} of {total:,} {unit}, {rate:,.0f}/s, {left}", file=stream, flush=True)

    yield advance
    took = time.monotonic() - started
    if total is not None:
        print(f"{title}: {done:,} {unit} in {took:.1f} s", file=stream, flush=True)
    elif took >= _SHORTEST_S:
        print(f"{title}: done in {took:.1f} s", file=stream, flush=True)
