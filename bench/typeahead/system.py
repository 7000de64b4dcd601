"""A system of the comparison: an index that is built from the corpus, and an HTTP server for suggest requests.

One load generator sends requests to all of them over loopback, so each has the thinnest HTTP server of its
platform. A system that cannot run on this machine is reported with the reason.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import quote

from bench.commands import processor_seconds

LIMIT: Final = 8


class Role(StrEnum):
    """The role of a system in the comparison."""

    BARE = "bare"
    OURS = "ours"
    PEER = "peer"


@dataclass(frozen=True, slots=True)
class BuildStats:
    """The cost of a build, from the corpus on disk to a searchable index; an index in memory only has 0 megabytes."""

    seconds: float
    index_mb: float


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server on 127.0.0.1, and the processes that serve, the HTTP server first; their descendants count too."""

    port: int
    pids: Sequence[int]


class System(ABC):
    """One engine behind one server; its name, for tables and `--only`, is in lower case with hyphens.

    `about` is the setup in one sentence: tokenizer, typo tolerance, order, server. `index` is the name of an index that
    several systems share. If it `caches_responses`, every request is sent once before measuring.
    """

    name: str
    role: Role = Role.PEER
    about: str
    index: str | None = None
    caches_responses: bool = False

    def missing(self) -> str | None:
        """The reason why it cannot run here and how to install it; None if it can, as by default."""
        return None

    @abstractmethod
    def version(self) -> str:
        """The versions of engine and server, such as `FTS5 of SQLite 3.46.1, uvicorn 0.54.0`."""

    @abstractmethod
    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Build the index of the public lines of `shops` in an NDJSON file, in a folder of its own, which is empty.

        Later runs call `serving` on the same folder only.
        """

    @abstractmethod
    def serving(self, folder: Path) -> AbstractContextManager[RunningServer]:
        """Serve the index in the folder; all processes have ended when the context ends.

        Processes inherit the processor core of the caller.
        """

    def path(self, query: str, country: str | None, limit: int = LIMIT) -> str:
        """The target of the GET request for a query."""
        chosen = "" if country is None else f"&country={country}"
        return f"/suggest?q={quote(query, safe='')}&limit={limit}{chosen}"

    def ids(self, body: bytes) -> list[str]:
        """The ids of the shops in a response body, best first."""
        return [shop["id"] for shop in json.loads(body)["shops"]]


def descendants(pids: Sequence[int]) -> list[int]:
    """The processes and all their running descendants, each once."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            waiting.extend(int(child) for task in tasks for child in (task / "children").read_text("ascii").split())
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended
        found.append(pid)
    return found


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a server's processes together, in megabytes (10^6 bytes).

    Shared pages count for each process in the resident set size, and once in the proportional one.
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


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Pin this process, and the processes that it starts, to one processor core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
