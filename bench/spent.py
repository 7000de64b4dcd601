"""Processor time of running processes while another process asks: what a request costs each of them.

Processor time is read by the processes' own clocks, so other work on the machine makes answers late and costs no more.
"""

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.asked import Kind
from tests.processes.load.loads import loaded
from tests.processes.load.plan import Plan
from tests.processes.load.wire import connected

_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Served:
    """A service that can be asked.

    Attributes:
        port: that it listens on.
        processes: those whose time counts, by whose it is: `service`, `engine`, `redis`.
    """

    port: int
    processes: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Spent:
    """What one round of requests took.

    Attributes:
        answers: how many.
        seconds: of the clock.
        processor: seconds of processor time, user's and system's, by whose it is.
    """

    answers: int
    seconds: float
    processor: Mapping[str, float]

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds

    def ms(self, whose: str) -> float:
        """Milliseconds of processor time for each answer."""
        return self.processor.get(whose, 0.0) * 1000 / self.answers

    def cores(self, whose: str) -> float:
        """How many processor cores it kept busy."""
        return self.processor.get(whose, 0.0) / self.seconds


def spent(served: Served, kind: Kind, *, connections: int, seconds: float, seed: int) -> Spent:
    """Ask from a process of its own, each connection when it has been answered.

    Args:
        served: who is asked.
        kind: what.
        connections: kept alive.
        seconds: how long.
        seed: of the order; another one for each round, or the same reports are sent again.

    Raises:
        RuntimeError: an answer was another one than expected; what failures cost says nothing.
    """
    before = _processor(served)
    told = loaded(Plan((served.port,), kind.questions, connections, seconds=seconds, seed=seed))
    after = _processor(served)
    wrong = sorted({(row.status, row.code) for row in told.rows if row.status != kind.status or row.code})
    if wrong or told.cut:
        raise RuntimeError(f"{kind.title}: {wrong} {told.cut[:3]}")
    return Spent(len(told.rows), told.seconds, {whose: after[whose] - before[whose] for whose in before})


def middle(rounds: Sequence[Spent]) -> Spent:
    """The medians of rounds, as a round."""
    names = rounds[0].processor
    answers = round(statistics.median(one.answers for one in rounds))
    times = {whose: statistics.median(one.ms(whose) for one in rounds) * answers / 1000 for whose in names}
    return Spent(answers, answers / statistics.median(one.per_second for one in rounds), times)


def mean_bytes(port: int, kind: Kind) -> float:
    """The size of an answer, head and body, on average over some of a kind."""

    async def sizes() -> list[int]:
        wire = await connected(port)
        answers = [await wire.ask(question.raw.encode()) for question in kind.questions[:_SHOWN]]
        wire.close()
        return [len(answer.head) + 4 + len(answer.body) for answer in answers]

    return statistics.mean(asyncio.run(sizes()))


def memory_mib(pid: int) -> tuple[float, float]:
    """A process's own memory, and the files that it maps, resident, in MiB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
    own, mapped = (int(status[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile"))
    return own, mapped


def _processor(served: Served) -> dict[str, float]:
    return {whose: sum(map(processor, pids)) for whose, pids in served.processes.items()}


def processor(pid: int) -> float:
    """A process's processor time in seconds, by the number that Linux gives to its clock."""
    return time.clock_gettime((~pid << 3) | 2)
