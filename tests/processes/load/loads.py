"""Starts a process that makes load and reads its result, and watches what the service uses meanwhile."""

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.processes.load.plan import LoadResult, Plan, Question, Row, decode_result
from tests.support.real.sources import REPOSITORY
from tests.support.service_process import Service, Vitals

_LONGER_S: Final = 60.0

# Status and mark of the answer to each question, by its position.
Answers = dict[int, tuple[int, str]]


class Load:
    def __init__(self, plan: Plan) -> None:
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
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(self._bound) == 0
        return decode_result(line)

    def stopped(self) -> LoadResult:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.finished()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def load(plan: Plan) -> Iterator[Load]:
    made = Load(plan)
    try:
        yield made
    finally:
        made.kill()


def loaded(plan: Plan) -> LoadResult:
    with load(plan) as made:
        return made.finished()


def answered_alone(port: int, questions: tuple[Question, ...]) -> Answers:
    """The answers while no other client asks, each always the same."""
    rows: list[Row] = []
    while len({row.question for row in rows}) < len(questions):
        rows += loaded(Plan((port,), questions, 1, seconds=1.0)).rows
    found = {row.question: (row.status, row.mark) for row in rows}
    assert {(row.question, (row.status, row.mark)) for row in rows} == set(found.items())
    return found


class Watch:
    """Looks at a service all the time: what it uses, as a series."""

    def __init__(self, service: Service, every_s: float) -> None:
        self.seen: list[Vitals] = []
        self._service = service
        self._every = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    @contextmanager
    def looking(self) -> Iterator["Watch"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def growth(self, of: Callable[[Vitals], int]) -> float:
        """The last fifth's median of something over that of the second one: before that it is warming up."""
        size = len(self.seen) // 5
        early, late = self.seen[size : 2 * size], self.seen[-size:]
        return statistics.median(map(of, late)) / statistics.median(map(of, early))

    def _look(self) -> None:
        while not self._stop.is_set():
            self.seen.append(self._service.vitals())
            time.sleep(self._every)
