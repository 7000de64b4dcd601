"""The load on one server: as much as it takes, one caller at a time, and half of what it takes.

wrk makes the first and `bench.typeahead.paced` the others, from a core of their own. Processor time is read
from the server's processes, so that what else the machine does makes answers late but none dearer. An answer that is
no success, or of another size than the probe's, fails the run: figures of failures say nothing.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.typeahead.process_usage import processor
from bench.typeahead.system import Served, descendants

_SCRIPT: Final = Path(__file__).with_name("wrk.lua")
_MARK: Final = "COUNTED "
# How far the mean size of a round's answers may be from that of the whole workload, as a share.
_SIZE_SLACK: Final = 0.35
# How far the paced load may miss the rate that it was told.
_RATE_SLACK: Final = 0.05
_WARM_UP_BOUND_S: Final = 180.0
# Who gets faster by more than this share is not warm yet, until so many windows in a row have not been.
_FASTER: Final = 0.05
_STEADY_WINDOWS: Final = 10


class LoadError(Exception):
    """A figure would say nothing; the text tells why."""


class NoAnswerYetError(LoadError):
    """Nothing was refused or broken, but nothing was answered either."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What wrk counted.

    Attributes:
        requests: that were answered.
        seconds: by the clock.
        bytes_each: the mean size of an answer, head and body.
    """

    requests: int
    seconds: float
    bytes_each: float

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Paced:
    """What the paced load counted; times run from the moment at which a request was due, or else was sent.

    Attributes:
        asked: requests a second that were due; of one caller those that were answered.
        achieved: that were answered.
        p50_us: the median, in microseconds.
        p99_us: the 99th percentile.
    """

    asked: float
    achieved: float
    p50_us: float
    p99_us: float

    @property
    def kept(self) -> bool:
        """Whether the rate was about what it should be; where not, the machine had other things to do."""
        return abs(self.achieved / self.asked - 1) <= _RATE_SLACK


@dataclass(frozen=True, slots=True)
class Targets:
    """What is asked of one system.

    Attributes:
        file: of targets, one a line.
        count: of them.
        bytes_each: the mean size of an answer, head and body, as the probe saw it.
    """

    file: Path
    count: int
    bytes_each: float


@dataclass(frozen=True, slots=True)
class Load:
    """How hard, how long, and from where.

    Attributes:
        core: the processor core of the load.
        seconds: of each measurement.
        connections: that are kept alive when it is to be saturated.
    """

    core: int
    seconds: float
    connections: int

    def warm_up(self, served: Served, distinct: Targets, least_seconds: float, *, every: bool) -> None:
        """Ask until so many seconds have passed and it gets no faster, for what compiles itself as it runs.

        OpenSearch on one core gets faster for a minute and more.

        Args:
            served: who is asked.
            distinct: targets, each once.
            least_seconds: how long in any case; 0 to ask no more than `every` says.
            every: whether to go on until each was asked for.

        Raises:
            LoadError: to ask for each took longer than anybody would wait; who still gets faster then is measured.
        """
        asked, spent, best = 0, 0.0, 0.0
        bound = max(_WARM_UP_BOUND_S, least_seconds)
        steady = 0 if least_seconds else _STEADY_WINDOWS
        while (unasked := every and asked < distinct.count) or spent < least_seconds or steady < _STEADY_WINDOWS:
            if spent > bound:
                if not unasked:
                    return
                raise LoadError(f"{distinct.count - asked} of {distinct.count} were not asked for within {spent:.0f} s")
            try:
                counted = self._wrk(served.port, distinct, asked, self.connections)
            except NoAnswerYetError:
                # Who is that slow, and cold, is asked on; the bound ends it.
                spent += self.seconds
            else:
                asked += counted.requests
                spent += counted.seconds
                steady = 0 if counted.per_second > best * (1 + _FASTER) else steady + 1
                best = max(best, counted.per_second)

    def saturated(self, served: Served, targets: Targets, start: int) -> tuple[Counted, float, float]:
        """As much as it takes: what was counted, and an answer's processor time in microseconds, all and the server's.

        Args:
            served: who is asked.
            targets: what for.
            start: after how many of the targets it begins.
        """
        own = descendants(served.pids[:1])
        others = [pid for pid in descendants(served.pids) if pid not in own]
        before = processor(own), processor(others)
        counted = self._wrk(served.port, targets, start, self.connections)
        server = (processor(own) - before[0]) * 1_000_000 / counted.requests
        rest = (processor(others) - before[1]) * 1_000_000 / counted.requests
        return counted, server + rest, server

    def single(self, served: Served, targets: Targets, start: int) -> Paced:
        """One caller who asks when it has been answered.

        wrk is not asked: it adds answers that it thinks were held up by slow ones, of which one caller has none.

        Raises:
            LoadError: an answer was no success.
        """
        return self._told(served, targets, start)

    def paced(self, served: Served, targets: Targets, start: int, rate: float, arrivals: str) -> Paced:
        """So many requests a second, whatever the answers take.

        Args:
            served: who is asked.
            targets: what for.
            start: after how many of the targets it begins.
            rate: requests a second.
            arrivals: `even`, or `poisson` for moments of chance, as of callers who know nothing of each other.

        Raises:
            LoadError: an answer was no success.
        """
        return self._told(served, targets, start, rate=rate, connections=self.connections, arrivals=arrivals)

    def _told(self, served: Served, targets: Targets, start: int, **more: float | str) -> Paced:
        options = {"port": served.port, "targets": targets.file, "start": start, "seconds": self.seconds, **more}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        told = json.loads(self._run([sys.executable, "-m", "bench.typeahead.paced", *words]))
        if told["refused"]:
            raise LoadError(f"{told['refused']} answers were no success")
        return Paced(told["asked"], told["achieved"], told["p50_us"], told["p99_us"])

    def _wrk(self, port: int, targets: Targets, start: int, connections: int) -> Counted:
        command = ["wrk", "-t1", f"-c{connections}", f"-d{self.seconds:g}s", "--timeout", "10s", "-s", str(_SCRIPT)]
        command += [f"http://127.0.0.1:{port}", "--", str(targets.file), str(start)]
        return checked(read_wrk(self._run(command)), targets.bytes_each)

    def _run(self, command: Sequence[str]) -> str:
        pinned = ["taskset", "-c", str(self.core), *command]
        ended = subprocess.run(pinned, check=False, capture_output=True, text=True)  # noqa: S603 - our own command
        if ended.returncode:
            raise LoadError(f"{command[0]} ended with {ended.returncode}: {ended.stderr[-2000:]}{ended.stdout[-500:]}")
        return ended.stdout


def missing_tools() -> str | None:
    """Why no load can be made here, and how to get what is missing; None where it can."""
    absent = [name for name in ("wrk", "taskset") if shutil.which(name) is None]
    if not absent:
        return None
    return f"not on PATH: {' and '.join(absent)}; Debian's packages are wrk and util-linux (apt-get install wrk)"


def read_wrk(printed: str) -> Counted:
    """Read what the script printed.

    Raises:
        LoadError: the line is not there, or an answer was missing or no success.
    """
    line = next((line for line in printed.splitlines() if line.startswith(_MARK)), None)
    if line is None:
        raise LoadError(f"wrk counted nothing: {printed[-2000:]}")
    told: dict[str, Any] = json.loads(line.removeprefix(_MARK))
    if not (told["refused"] or told["broken"] or told["requests"]):
        raise NoAnswerYetError("nothing was answered before the time was over")
    if told["refused"] or told["broken"]:
        raise LoadError(f"of {told['requests']} requests {told['refused']} were refused and {told['broken']} broken")
    seconds = told["microseconds"] / 1_000_000
    return Counted(told["requests"], seconds, told["bytes"] / told["requests"])


def checked(counted: Counted, expected: float) -> Counted:
    """What was counted, if the answers had about the size that they should.

    Args:
        counted: by wrk.
        expected: the mean size of an answer, in bytes.

    Raises:
        LoadError: they had not: they say something else.
    """
    if abs(counted.bytes_each / expected - 1) > _SIZE_SLACK:
        raise LoadError(f"answers of {counted.bytes_each:.0f} bytes on average, where the probe had {expected:.0f}")
    return counted
