"""The plan and the result of the process that makes load: both as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

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
    """A load.

    Attributes:
        ports: of the services.
        questions: what is asked.
        connections: clients of a closed loop, each asking when it has been answered; the most of an open loop.
        rate: requests a second that an open loop sends, answered or not; 0 for a closed loop.
        seconds: for how long, unless it is stopped before.
        pause: of each client of a closed loop between two requests, in seconds.
        balanced: ask only services that say that they are ready, as a load balancer does.
        seed: of chance.
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
    """One answer.

    Attributes:
        question: its position in the plan.
        status: of HTTP.
        code: of the problem, over MCP too; empty where there is none.
        retry: whether it says when to try again.
        mark: what two answers have in common if they say the same.
        generation: that it says it is from; empty where it says none.
        number: that the request had, if it is numbered.
        at: when it was sent; seconds of the machine's monotonic clock.
        seconds: until it was whole.
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
    """The time that so large a share of them does not pass."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
