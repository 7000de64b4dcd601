"""The procedure that measures all systems: cores, load and rounds."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bench.typeahead.load import Load, LoadError
from bench.typeahead.priorities import may_raise_priority


@dataclass(frozen=True, slots=True)
class Procedure:
    """The procedure that measures all systems.

    Attributes:
        server_core: the processor core of the servers.
        load: the load, which runs on another core.
        rounds: the number of rounds.
        warm_up: the minimum seconds of load before the first round; extended while a system gets faster.
        quality: whether the quality is measured.
        apart: whether the systems run one after the other instead of together; this takes less memory, and rounds do
            not alternate.
        say: called with each line of progress.
    """

    server_core: int
    load: Load
    rounds: int
    warm_up: float
    quality: bool
    apart: bool
    say: Callable[[str], None]


def two_cores() -> tuple[int, int]:
    """The core of the servers and that of the load.

    Raises:
        LoadError: there is only one; the server would share it with the load.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise LoadError("two processor cores are needed: one for the server, one for the load")
    return cores[0], cores[1]


def described_settings(procedure: Procedure, requests: int, heap: str) -> dict[str, str]:
    """The settings of the procedure for the report."""
    load = {name: str(value) for name, value in asdict(procedure.load).items() if name != "core"}
    servers = "one after the other" if procedure.apart else "all together"
    return {
        **load,
        "rounds": str(procedure.rounds),
        "requests in the workload": str(requests),
        "OpenSearch heap": heap,
        "servers": servers,
        "priorities": "the load, then who is asked, then the others" if may_raise_priority() else "none",
    }
