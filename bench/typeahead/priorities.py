"""Scheduling priorities of the load and of the server that is measured; needs root or CAP_SYS_NICE."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.typeahead.system import RunningServer, descendants


def raise_priority() -> None:
    """Run this process before all others on its core."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))


def may_raise_priority() -> bool:
    """Whether `raise_priority` is allowed here."""
    try:
        raise_priority()
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


@contextmanager
def prioritised(served: RunningServer, every: Sequence[RunningServer]) -> Iterator[None]:
    """Give all threads of the other servers the idle priority, if the process has the permission.

    They are not stopped: engines have failed when they were continued after a stop.
    """
    if not may_raise_priority():
        yield
        return
    own = set(descendants(served.pids))
    waiting = [pid for one in every for pid in descendants(one.pids) if pid not in own]
    _schedule(waiting, os.SCHED_IDLE)
    try:
        yield
    finally:
        # Listed again: processes forked in between have inherited the priority.
        _schedule((pid for one in every for pid in descendants(one.pids)), os.SCHED_OTHER)


def _schedule(pids: Iterable[int], policy: int) -> None:
    for pid in pids:
        # A process or a thread may have ended.
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(ProcessLookupError):
                    os.sched_setscheduler(int(task.name), policy, os.sched_param(0))
