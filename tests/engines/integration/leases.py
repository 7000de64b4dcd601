"""Locations with a lease, and the process that a test kills or pauses while it holds one.

`python -m tests.engines.integration.leases KIND TARGET PREFIX TTL WHAT ...` is that process: it prints `held` when it
holds the lease, answers the lines `check` and `release` of its standard input, and ends with it.
"""

import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opensearchpy import OpenSearch

from indexer.sinks.embedded.sink import EmbeddedLease
from indexer.sinks.lease import Lease, LeaseLostError, holding
from indexer.sinks.opensearch.lease import OpenSearchLease
from tests.support import forked
from tests.support.real.sources import REPOSITORY

_PROGRAM: Final = "tests.engines.integration.leases"
_PATIENCE_S: Final = 60.0
_TURN_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class LeaseLocation:
    """Where a lease is asked for, as arguments that a process can be given.

    `target` is the index directory or the cluster's URL; `ttl` the seconds that a lease lasts without renewal, which
    the embedded one does not limit.
    """

    kind: str
    target: str
    prefix: str = "-"
    ttl: float = 15.0

    def ask(self) -> Lease:
        if self.kind == "embedded":
            return EmbeddedLease(Path(self.target))
        return OpenSearchLease(OpenSearch([self.target]), self.prefix, self.ttl)

    def start(self, what: str, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", _PROGRAM, self.kind, self.target, self.prefix, str(self.ttl), what, *words]
        return forked.start(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @contextmanager
    def holder(self) -> Iterator[subprocess.Popen[str]]:
        """A process that holds the lease; gone afterwards, even if it was paused."""
        process = self.start("hold")
        with process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "held\n"
                yield process
            finally:
                process.kill()


@contextmanager
def opensearch_lease(url: str, ttl: float = 15.0) -> Iterator[LeaseLocation]:
    """An unused prefix in an OpenSearch; its index is deleted at the end."""
    location = LeaseLocation("opensearch", url, f"test-{secrets.token_hex(6)}", ttl)
    yield location
    with OpenSearch([url]) as client:
        client.indices.delete(index=f"{location.prefix}-lease", params={"ignore": 404})


def held_by_us(job: str) -> str:
    who = re.escape(f"{job} (process {os.getpid()} on {socket.gethostname()}, since ")
    return rf"^another job has the lease.*: {who}\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ\)$"


def reply_to(process: subprocess.Popen[str], line: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().rstrip("\n")


def race(location: LeaseLocation, threads: int, turns: int, mark: Path) -> int:
    """Threads that take the lease in turn; returns how many turns two of them had at once, or had failing."""
    clashes: list[int] = []

    def run() -> None:
        lease = location.ask()
        for _ in range(turns):
            clashed = 1
            with holding(lease, "race", _PATIENCE_S):
                try:
                    # Of two who make the same file one fails, whatever process they are in.
                    mark.touch(exist_ok=False)
                    time.sleep(_TURN_S)
                    lease.check()
                    mark.unlink()
                    clashed = 0
                except (FileExistsError, FileNotFoundError):
                    pass
            clashes.append(clashed)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(clashes) + threads * turns - len(clashes)


def _hold(lease: Lease) -> None:
    lease.acquire("build", 0)
    _print_line("held")
    for line in sys.stdin:
        if line == "release\n":
            lease.release()
            _print_line("released")
            continue
        try:
            lease.check()
            _print_line("held")
        except LeaseLostError:
            _print_line("lost")


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _run(location: LeaseLocation, what: str, words: list[str]) -> None:
    match what:
        case "race":
            _print_line(str(race(location, int(words[0]), int(words[1]), Path(words[2]))))
        case _:
            _hold(location.ask())


if __name__ == "__main__":
    _kind, _target, _prefix, _ttl, _what, *_words = sys.argv[1:]
    _run(LeaseLocation(_kind, _target, _prefix, float(_ttl)), _what, _words)
