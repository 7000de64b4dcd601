"""One server at a time: while it is measured the others are stopped, whose idle work would disturb its figures."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.typeahead.contestant import Served, descendants


@contextmanager
def stopped(others: Sequence[Served]) -> Iterator[None]:
    """The processes of these servers stand still; then they go on.

    A Java engine looks after its heap and a database after its log also where nobody asks them anything: some
    milliseconds a second, for which the server that is asked would wait.
    """
    _signal(others, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal(others, signal.SIGCONT)


def _signal(servers: Sequence[Served], number: signal.Signals) -> None:
    for pid in descendants([pid for served in servers for pid in served.pids]):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it has ended meanwhile
