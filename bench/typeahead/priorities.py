"""Whose turn it is on the core of the servers, and who comes first on that of the load; for root or CAP_SYS_NICE."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.typeahead.system import Served, descendants


def raise_priority() -> None:
    """Run before other processes of the core from now on.

    Raises:
        PermissionError: that is not for everybody.
    """
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
def prioritised(served: Served, every: Sequence[Served]) -> Iterator[None]:
    """All others have what this one leaves of the core, down to their last thread; where not allowed, they share it.

    They are not stopped: engines that had stood still have failed when they went on.

    Args:
        served: who is asked.
        every: all that are up, that one included.
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
        # Asked for anew: who was forked meanwhile has it from its parent.
        _schedule((pid for one in every for pid in descendants(one.pids)), os.SCHED_OTHER)


def _schedule(pids: Iterable[int], policy: int) -> None:
    for pid in pids:
        # A process, or a thread, may have ended meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(ProcessLookupError):
                    os.sched_setscheduler(int(task.name), policy, os.sched_param(0))
