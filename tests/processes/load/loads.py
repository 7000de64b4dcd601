"""Starts a process that makes load, and reads its result."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.processes.load.plan import LoadResult, Plan, decode_result
from tests.support.real.sources import REPOSITORY

_LONGER_S: Final = 60.0


class Load:
    """A running load."""

    def __init__(self, plan: Plan) -> None:
        """Begin."""
        self._bound = plan.seconds + _LONGER_S
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.load.generator"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(plan.as_line() + "\n")
        self._process.stdin.flush()

    def finished(self) -> LoadResult:
        """Wait for its end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(self._bound) == 0
        return decode_result(line)

    def stopped(self) -> LoadResult:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.finished()

    def kill(self) -> None:
        """End it whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def load(plan: Plan) -> Iterator[Load]:
    """A load, which ends with the block at the latest."""
    made = Load(plan)
    try:
        yield made
    finally:
        made.kill()


def loaded(plan: Plan) -> LoadResult:
    """All of a load."""
    with load(plan) as made:
        return made.finished()
