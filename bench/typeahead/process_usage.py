"""What a server's processes use: processor time and memory, their descendants' with theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.commands import processor_seconds
from bench.typeahead.system import Served, descendants


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a server's processes together, in megabytes (10^6 bytes).

    Attributes:
        rss_mb: resident, where what processes share counts for each.
        pss_mb: resident, where it counts once.
    """

    rss_mb: float
    pss_mb: float


def memory(served: Served) -> Memory:
    """What the server's processes hold now."""
    totals = {"Rss": 0, "Pss": 0}
    for pid in descendants(served.pids):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            name, _, rest = line.partition(":")
            if name in totals:
                totals[name] += int(rest.split()[0]) * 1024
    return Memory(totals["Rss"] / 1e6, totals["Pss"] / 1e6)


def processor(pids: Sequence[int]) -> float:
    """The processor time of processes until now, user's and system's, in seconds."""
    return sum(map(processor_seconds, pids))
