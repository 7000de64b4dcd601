"""How all systems are measured: on which cores, how hard, how often."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bench.typeahead.load import Load, LoadError
from bench.typeahead.priorities import may_raise_priority


@dataclass(frozen=True, slots=True)
class Procedure:
    """How all systems are measured.

    Attributes:
        server_core: the processor core of the servers.
        load: on all of them, from another core.
        rounds: how many.
        warm_up: seconds of load before the first round, at least; it goes on while a system gets faster.
        quality: whether it is measured.
        apart: whether one server is up after the other, undisturbed by the others, which also takes less memory; rounds
            then take no turns.
        say: takes a line about what goes on.
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
        LoadError: there is one only; a server that shares its core with its load is not what is measured.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise LoadError("two processor cores are needed: one for the server, one for the load")
    return cores[0], cores[1]


def described_settings(procedure: Procedure, requests: int, heap: str) -> dict[str, str]:
    """How it was measured, for the report."""
    told = {name: str(value) for name, value in asdict(procedure.load).items() if name != "core"}
    servers = "one after the other" if procedure.apart else "all up at once"
    return {
        **told,
        "rounds": str(procedure.rounds),
        "requests in the workload": str(requests),
        "OpenSearch heap": heap,
        "servers": servers,
        "priorities": "the load, then who is asked, then the others" if may_raise_priority() else "none",
    }
