"""The lease: one indexer job at a time for each location of generations (G4).

The lease ends with its job, however that ends. A job that lost its lease must not write any more; if it does, between a
check and a write, the fence of publishing stops it (G1).

A holder on this machine is known to have died by its machine's boot, its process namespace, its number and its start
time, as the system reuses numbers.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, Self

from pydantic import PositiveInt, TypeAdapter
from pydantic.dataclasses import dataclass
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from indexer.sinks.failures import SinkError

_PROC: Final = Path("/proc")
_ENDED: Final = frozenset("ZXx")  # terminated, and perhaps not yet reaped by its parent
# Indexes of fields in /proc/<pid>/stat after the program's name, which may hold any character.
_STATE: Final = 0
_THREADS: Final = 17
_STARTED: Final = 19


class LeaseHeldError(SinkError):
    """Another job holds the lease; the message says which and since when."""


class LeaseLostError(SinkError):
    """The lease was lost while the job ran: another job may hold it."""


class LeaseUnansweredError(SinkError):
    """The engine did not answer a request for the lease, whose holder is thus unknown; a retry may help."""


class Lease(Protocol):
    """A handle on the right to write, which at most one job holds; it can't be acquired twice."""

    def acquire(self, job: str, wait: float) -> None:
        """Acquire the lease; raises LeaseHeldError if another job still holds it after `wait` seconds (0 tries once).

        `job` is shown to jobs that have to wait: build, follow, rollback, prune, verify.
        """

    def check(self) -> None:
        """Verify that the lease is still held; raises LeaseLostError if not, or if that is unknown, from then on."""

    def release(self) -> None:
        """Release the lease; does nothing if it is not held."""


@contextmanager
def holding(lease: Lease, job: str, wait: float) -> Iterator[None]:
    """Hold the lease during a `with` block, and release it however that ends."""
    lease.acquire(job, wait)
    try:
        yield
    finally:
        lease.release()


def acquire_until(attempt: Callable[[], None], wait: float, pause: float) -> None:
    """Attempt to acquire a lease at least once, and again while another job holds it or the engine does not answer.

    `attempt` raises LeaseHeldError or LeaseUnansweredError if it has to be repeated; after `wait` seconds the last one
    is raised. `pause` is the longest of the random pauses between attempts, in seconds.
    """
    retry = retry_if_exception_type((LeaseHeldError, LeaseUnansweredError))
    pauses = wait_random(pause / 2, pause)
    Retrying(retry=retry, stop=stop_after_delay(wait), wait=pauses, reraise=True)(attempt)


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A process that holds a lease for a job; its host and `since`, RFC 3339 UTC, are for messages only.

    `machine` is the boot and process namespace of `pid`, `started` is in ticks since the boot; both None if unknown.
    """

    job: str
    host: str
    pid: PositiveInt
    since: str
    machine: str | None
    started: int | None

    @classmethod
    def here(cls, job: str) -> Self:
        """This process, now."""
        own = _process(os.getpid())
        since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return cls(job, socket.gethostname(), os.getpid(), since, _machine(), own.started if own else None)

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> Self:
        """Parse a JSON object of the fields; ValueError if it is none."""
        return TypeAdapter(cls).validate_python(document)

    def is_dead(self) -> bool:
        """Whether the process has certainly ended; False for a process on another machine."""
        if self.machine is None or self.started is None or self.machine != _machine():
            return False
        try:
            with suppress(PermissionError):  # a process of another user, which /proc may hide
                os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        process = _process(self.pid)
        return process is not None and (process.ended or process.started != self.started)

    def __str__(self) -> str:
        return f"{self.job} (process {self.pid} on {self.host}, since {self.since})"


class _Process(NamedTuple):
    started: int
    ended: bool


def _machine() -> str | None:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return None


def _process(pid: int) -> _Process | None:
    try:
        stat = (_PROC / f"{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        # A process whose first thread has ended looks the same while other threads run.
        ended = fields[_STATE] in _ENDED and int(fields[_THREADS]) <= 1
        return _Process(int(fields[_STARTED]), ended)
    except (OSError, IndexError, ValueError):
        return None
