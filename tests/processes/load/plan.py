"""The plan and the result of the process that makes load, its start, and what is watched meanwhile."""

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from tests.support.real.sources import REPOSITORY
from tests.support.service_process import Service, Vitals

# In a request's bytes: becomes another number of as many digits each time that it is sent.
NUMBER: Final = "00000000"


@dataclass(frozen=True, slots=True)
class Question:
    """One request as it is sent; `NUMBER` in a numbered one becomes another number each time.

    `mcp` says that its answer is a JSON-RPC message, `weight` how often it is asked, relative to the others.
    """

    name: str
    raw: str
    mcp: bool = False
    numbered: bool = False
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A load: a closed loop of clients that ask when they have been answered, or an open one with a rate a second.

    An open loop sends requests, answered or not, over at most so many connections. `pause` is that of each client of a
    closed loop between two requests, in seconds. A `balanced` load asks only services that say that they are ready.
    """

    ports: tuple[int, ...]
    questions: tuple[Question, ...]
    connections: int
    rate: float = 0.0
    seconds: float = 3_600.0
    pause: float = 0.0
    balanced: bool = False
    seed: int = 1

    def as_line(self) -> str:
        return json.dumps(asdict(self))


def plan_from(line: str) -> Plan:
    stated = json.loads(line)
    questions = tuple(Question(**one) for one in stated.pop("questions"))
    return Plan(**{**stated, "ports": tuple(stated["ports"]), "questions": questions})


class Row(NamedTuple):
    """One answer to the question at a position of the plan, sent `at` a second of the machine's monotonic clock.

    The code, of a problem over MCP too, and the generation are empty where there is none. `retry` is whether it says
    when to try again, `mark` what two answers have in common if they say the same, and `number` that of the request.
    """

    question: int
    status: int
    code: str
    retry: bool
    mark: str
    generation: str
    number: int
    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What came of a load: all answers, and what was said of requests without a whole one.

    `unsent` requests of an open loop found all connections in use.
    """

    rows: tuple[Row, ...]
    cut: tuple[str, ...]
    unsent: int
    seconds: float

    @property
    def answered(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.status == 200)

    @property
    def per_second(self) -> float:
        return len(self.answered) / self.seconds


def encode_result(rows: Sequence[Sequence[Any]], cut: Sequence[str], unsent: int, seconds: float) -> str:
    return json.dumps({"rows": rows, "cut": cut, "unsent": unsent, "seconds": seconds})


def decode_result(line: str) -> LoadResult:
    stated = json.loads(line)
    rows = tuple(Row(*row) for row in stated["rows"])
    return LoadResult(rows, tuple(stated["cut"]), stated["unsent"], stated["seconds"])


def quantile(seconds: Sequence[float], share: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


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
    rows: list[Row] = []
    while len({row.question for row in rows}) < len(questions):
        rows += loaded(Plan((port,), questions, 1, seconds=1.0)).rows
    found = {row.question: (row.status, row.mark) for row in rows}
    assert {(row.question, (row.status, row.mark)) for row in rows} == set(found.items())
    return found


class Watch:
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
