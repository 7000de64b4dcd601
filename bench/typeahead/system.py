"""What takes part in the comparison: an index built from one corpus, and an HTTP server that answers typeahead from it.

All are driven by the same load generator over loopback, so each brings a server, the thinnest of its habitat. A
system that cannot run on this machine says why; it is never left out silently.
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

LIMIT: Final = 8


class Role(StrEnum):
    """What a system is in the comparison."""

    BARE = "bare"
    OURS = "ours"
    PEER = "peer"


@dataclass(frozen=True, slots=True)
class Built:
    """What a build took.

    Attributes:
        seconds: by the clock, from the corpus on disk to an index that can be asked.
        index_mb: megabytes (10^6 bytes) on disk; 0 where the index lives in memory only.
    """

    seconds: float
    index_mb: float


@dataclass(frozen=True, slots=True)
class Served:
    """A server that can be asked.

    Attributes:
        port: on 127.0.0.1.
        pids: of every process that works for an answer, the HTTP server's first; their descendants are counted with
            them.
    """

    port: int
    pids: Sequence[int]


class System(ABC):
    """One engine behind one server.

    Attributes:
        name: in tables and for `--only`: lower case, words joined by hyphens.
        role: peer, unless it is ours or the bare server.
        about: in a sentence, how it is set up: tokenizer, typo tolerance, order, server.
        index: of what `build` makes, where several systems serve the same; the name without.
        keeps_answers: whether it is to have been asked for everything once before it is measured.
    """

    name: str
    role: Role = Role.PEER
    about: str
    index: str | None = None
    keeps_answers: bool = False

    @abstractmethod
    def missing(self) -> str | None:
        """Why it cannot run here, as a sentence that says how to get it; None where it can."""

    @abstractmethod
    def version(self) -> str:
        """Of the engine and of what serves it, such as `FTS5 of SQLite 3.46.1, uvicorn 0.54.0`."""

    @abstractmethod
    def build(self, corpus: Path, folder: Path) -> Built:
        """Build the index.

        Args:
            corpus: lines of `shops` as NDJSON; those whose visibility is not public are not to be found.
            folder: empty and its own; kept for later runs, when only `serving` is called.
        """

    @abstractmethod
    def serving(self, folder: Path) -> AbstractContextManager[Served]:
        """Serve what `build` left in the folder, answering `path`; every process has ended when the context ends.

        A process inherits the processor core that the caller is pinned to.
        """

    def path(self, query: str, country: str | None, limit: int = LIMIT) -> str:
        """What is asked, as the target of a GET; whoever is asked in another way says so here."""
        chosen = "" if country is None else f"&country={country}"
        return f"/suggest?q={quote(query, safe='')}&limit={limit}{chosen}"

    def ids(self, body: bytes) -> list[str]:
        """The ids of the shops in an answer's body, best first."""
        return [shop["id"] for shop in json.loads(body)["shops"]]


def descendants(pids: Sequence[int]) -> list[int]:
    """The processes and all that they have started and that still run, each once."""
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
            continue  # it has ended meanwhile
        found.append(pid)
    return found


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """This process, and all that it starts meanwhile, on one processor core only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
