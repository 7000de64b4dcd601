"""Processor time and memory of the processes of a server, including their descendants."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.commands import processor_seconds
from bench.typeahead.system import RunningServer, descendants


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a server's processes together, in megabytes (10^6 bytes).

    Attributes:
        rss_mb: resident set size; shared pages count for each process.
        pss_mb: proportional set size; shared pages count once.
    """

    rss_mb: float
    pss_mb: float


def memory(served: RunningServer) -> Memory:
    """The current memory of the processes of a server."""
    totals = {"Rss": 0, "Pss": 0}
    for pid in descendants(served.pids):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended
        for line in lines:
            name, _, rest = line.partition(":")
            if name in totals:
                totals[name] += int(rest.split()[0]) * 1024
    return Memory(totals["Rss"] / 1e6, totals["Pss"] / 1e6)


def processor(pids: Sequence[int]) -> float:
    """The processor time that processes have used, user and system, in seconds."""
    return sum(map(processor_seconds, pids))
