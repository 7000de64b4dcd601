"""What a service's log says of the calls that a load made: bytes a line, and what was asked of the engine."""

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.table import Table


def log_table(log: Path) -> Table:
    """Lines of calls by route, for people.

    Args:
        log: of a service at the level info, as JSON.
    """
    sizes: dict[str, list[int]] = defaultdict(list)
    calls: dict[str, list[float]] = defaultdict(list)
    with log.open("rb") as file:
        for line in file:
            if not line.startswith(b"{"):
                continue
            told: dict[str, Any] = json.loads(line)
            if told["event"] == "call":
                sizes[told["route"]].append(len(line))
                calls[told["route"]].append(told.get("engine_calls", 0))
    table = Table("route", "lines", "bytes a line", "engine calls a request", title="Log lines of calls")
    for route in sorted(sizes):
        mean = statistics.mean(calls[route])
        table.add_row(route, f"{len(sizes[route]):,}", f"{statistics.mean(sizes[route]):.0f}", f"{mean:.2f}")
    every = [size for route in sizes.values() for size in route]
    table.caption = f"{statistics.mean(every):.0f} bytes a line on average"
    return table
