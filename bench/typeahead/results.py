"""The results of a run as they are stored: the figures of every round, so that summaries can be verified.

The best round has the highest throughput or the lowest time, separately for each figure: a disturbance of the machine
makes figures worse, never better.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from bench.typeahead.load import Paced
from bench.typeahead.quality import QualityScores
from bench.typeahead.system import BuildStats, Memory, Role

_ABOUT_HALF: Final = 0.45


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one system: saturated, with one caller, and at half of saturation by two kinds of arrivals.

    The processor time of an answer is that of all its processes, and of the HTTP server among them; the percentiles are
    those of one caller.
    """

    per_second: float
    cpu_us: float
    server_cpu_us: float
    p50_us: float
    p99_us: float
    even: Paced
    poisson: Paced


@dataclass(frozen=True, slots=True)
class Result:
    """One system at one size, with all rounds, and its memory after the last one.

    `body_bytes` is the mean size of an answer's body. The quality is None where it was not measured.
    """

    name: str
    role: Role
    about: str
    version: str
    built: BuildStats
    body_bytes: float
    rounds: tuple[Round, ...]
    memory: Memory
    quality: QualityScores | None

    @property
    def per_second(self) -> float:
        """Answers a second, best round."""
        return max(one.per_second for one in self.rounds)

    def lowest(self, figure: Callable[[Round], float]) -> float:
        """A time's best round."""
        return min(map(figure, self.rounds))

    def calmest(self, paced: Callable[[Round], Paced]) -> Paced:
        """The round with the lowest p99 of one kind of paced load.

        A round counts only if its rate was reached, and was about half of the saturated rate.
        """
        least = _ABOUT_HALF * self.per_second
        return min(map(paced, self.rounds), key=lambda one: (not one.on_rate, one.achieved < least, one.p99_us))


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A system without figures, as it could not run or failed."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Size:
    """One size of the corpus: so many invented shops, `mixed` with development shops or not, in all `lines`.

    The results are in the order of the run. Who is `absent` could not run on this machine; who `failed` ran, and gave
    wrong answers or none.
    """

    shops: int
    lines: int
    mixed: bool
    results: tuple[Result, ...]
    absent: tuple[Unmeasured, ...] = ()
    failed: tuple[Unmeasured, ...] = ()

    def named(self, name: str) -> Result | None:
        """A system's result, if it has one."""
        return next((one for one in self.results if one.name == name), None)

    def judged(self) -> list[tuple[str, Result]]:
        """The results with a quality and their titles; those of ours with equal responses appear once."""
        found: list[tuple[str, Result]] = []
        for one in self.results:
            same = [title for title, other in found if one.role is Role.OURS and other.quality == one.quality]
            if same:
                found = [(f"{title}, {one.name}" if title in same else title, other) for title, other in found]
            elif one.quality is not None:
                found.append((one.name, one))
        return found

    def of(self, role: Role) -> list[Result]:
        """The results of one role."""
        return [one for one in self.results if one.role is role]


@dataclass(frozen=True, slots=True)
class Claim:
    """One figure of another benchmark of the same run, with its unit in the title; `at_most` is what is wanted."""

    title: str
    value: float
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run, which ended at `made_at`, RFC 3339 in UTC; `extra` has figures of other benchmarks by title."""

    made_at: str
    commit: str | None
    machine: Mapping[str, str]
    settings: Mapping[str, str]
    seeds: Mapping[str, int]
    sizes: tuple[Size, ...]
    extra: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict)


_REPORT: TypeAdapter[Report] = TypeAdapter(Report)


def write(report: Report, path: Path) -> None:
    """Keep a run as JSON."""
    path.write_bytes(_REPORT.dump_json(report, indent=1) + b"\n")


def read(path: Path) -> Report:
    """Read a stored report."""
    return _REPORT.validate_json(path.read_bytes())
