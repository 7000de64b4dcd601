"""The load on one server: saturating, one caller, and at half of the saturated rate.

wrk sends the first and `bench.typeahead.paced` the others, from their own core. Processor time is read from the
processes of the server, so that other work on the machine does not count. A response without success, or of another
size than those of the probe, fails the run.
"""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.typeahead.system import RunningServer, descendants, processor

_SCRIPT: Final = Path(__file__).with_name("wrk.lua")
_MARK: Final = "COUNTED "
# How far the mean size of a round's answers may be from that of the whole workload, as a share; sizes differ about as
# much as they are large, so the mean of few answers may be farther off by this many of its standard errors.
_SIZE_SLACK: Final = 0.35
_SIZE_ERRORS: Final = 4.0
# How far the paced load may miss its rate.
_RATE_SLACK: Final = 0.05
_WARM_UP_BOUND_S: Final = 180.0
# A server is warm when so many windows in a row were not faster by more than this share.
_FASTER: Final = 0.05
_STEADY_WINDOWS: Final = 10


class LoadError(Exception):
    """A measurement is not valid; the text has the reason."""


class NoAnswerYetError(LoadError):
    """There was no response before the end of the window."""


@dataclass(frozen=True, slots=True)
class WrkCounts:
    """The counts of wrk; `bytes_each` is the mean size of a response, head and body."""

    requests: int
    seconds: float
    bytes_each: float

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Paced:
    """The result of the paced load; times run from the due time of a request.

    Due requests a second were `asked`, or for one caller its responses, and responses a second `achieved`.
    """

    asked: float
    achieved: float
    p50_us: float
    p99_us: float

    @property
    def on_rate(self) -> bool:
        """Whether the rate was reached; if not, the machine was busy."""
        return abs(self.achieved / self.asked - 1) <= _RATE_SLACK


@dataclass(frozen=True, slots=True)
class Targets:
    """The requests to one system, one target a line; `bytes_each` as of `WrkCounts`, for the responses of the probe."""

    file: Path
    count: int
    bytes_each: float


@dataclass(frozen=True, slots=True)
class Load:
    """The processor core of the load, the length of a measurement, and the connections of the saturating load."""

    core: int
    seconds: float
    connections: int

    def warm_up(self, served: RunningServer, distinct: Targets, least_seconds: float, *, every: bool) -> None:
        """Send requests for a minimum time and until the server gets no faster, as just-in-time compilers need time.

        OpenSearch on one core gets faster for more than a minute. With 0 `least_seconds`, only what `every` demands is
        sent: each distinct target at least once.
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
                # A slow, cold server gets further requests until the bound.
                spent += self.seconds
            else:
                asked += counted.requests
                spent += counted.seconds
                steady = 0 if counted.per_second > best * (1 + _FASTER) else steady + 1
                best = max(best, counted.per_second)

    def saturated(self, served: RunningServer, targets: Targets, start: int) -> tuple[WrkCounts, float, float]:
        """The saturating load from a target on: counts, and processor time a response in microseconds.

        The times are those of all processes and of the HTTP server.
        """
        own = descendants(served.pids[:1])
        others = [pid for pid in descendants(served.pids) if pid not in own]
        before = processor(own), processor(others)
        counted = self._wrk(served.port, targets, start, self.connections)
        server = (processor(own) - before[0]) * 1_000_000 / counted.requests
        rest = (processor(others) - before[1]) * 1_000_000 / counted.requests
        return counted, server + rest, server

    def single(self, served: RunningServer, targets: Targets, start: int) -> Paced:
        """One caller that sends a request when it has the response.

        wrk is not used, as it corrects times for coordinated omission, which one caller does not have.
        """
        return self._paced(served, targets, start)

    def paced(self, served: RunningServer, targets: Targets, start: int, rate: float, arrivals: str) -> Paced:
        """Requests at a fixed rate a second, independent of the responses, from a target on.

        Arrivals are `even`, or `poisson` as of independent callers.
        """
        return self._paced(served, targets, start, rate=rate, connections=self.connections, arrivals=arrivals)

    def _paced(self, served: RunningServer, targets: Targets, start: int, **more: float | str) -> Paced:
        options = {"port": served.port, "targets": targets.file, "start": start, "seconds": self.seconds, **more}
        arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        result = json.loads(self._run([sys.executable, "-m", "bench.typeahead.paced", *arguments]))
        if result["refused"]:
            raise LoadError(f"{result['refused']} answers were no success")
        return Paced(result["asked"], result["achieved"], result["p50_us"], result["p99_us"])

    def _wrk(self, port: int, targets: Targets, start: int, connections: int) -> WrkCounts:
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
    """The missing programs and how to install them, or None."""
    absent = [name for name in ("wrk", "taskset") if shutil.which(name) is None]
    if not absent:
        return None
    return f"not on PATH: {' and '.join(absent)}; Debian's packages are wrk and util-linux (apt-get install wrk)"


def read_wrk(printed: str) -> WrkCounts:
    """Parse the output of the wrk script."""
    line = next((line for line in printed.splitlines() if line.startswith(_MARK)), None)
    if line is None:
        raise LoadError(f"wrk counted nothing: {printed[-2000:]}")
    counts: dict[str, Any] = json.loads(line.removeprefix(_MARK))
    if not (counts["refused"] or counts["broken"] or counts["requests"]):
        raise NoAnswerYetError("nothing was answered before the time was over")
    if counts["refused"] or counts["broken"]:
        raise LoadError(
            f"of {counts['requests']} requests {counts['refused']} were refused and {counts['broken']} broken"
        )
    seconds = counts["microseconds"] / 1_000_000
    return WrkCounts(counts["requests"], seconds, counts["bytes"] / counts["requests"])


def checked(counted: WrkCounts, expected: float) -> WrkCounts:
    """The counts of wrk, if the responses had about the expected mean size in bytes."""
    if abs(counted.bytes_each / expected - 1) > max(_SIZE_SLACK, _SIZE_ERRORS / math.sqrt(counted.requests)):
        raise LoadError(f"answers of {counted.bytes_each:.0f} bytes on average, where the probe had {expected:.0f}")
    return counted
