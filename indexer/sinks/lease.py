"""The lease: one indexer job at a time, for one place that generations are written to (G4).

A job that ends, however it ends, lets the next one in. A job that lost its lease must not write any more; should it do
so all the same, between a check and a write, then the fence of publishing stops it (G1).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from indexer.sinks.failures import SinkError


class LeaseHeldError(SinkError):
    """Another job has the lease; the text says which and since when."""


class LeaseLostError(SinkError):
    """The lease was lost while the job ran: another job may have begun."""


class LeaseUnansweredError(SinkError):
    """The engine did not answer for the lease, which may pass: who holds it is not known."""


class Lease(Protocol):
    """The right to write, held by at most one job; one object is one asker, and can't take it twice."""

    def acquire(self, job: str, wait: float) -> None:
        """Take the lease.

        Args:
            job: what it is for, for those who have to wait: build, follow, rollback, prune, verify.
            wait: seconds to wait while another job has it; 0 tries once.

        Raises:
            LeaseHeldError: another job has it still.
            SinkError: it could not be asked for.
        """

    def check(self) -> None:
        """Make sure that the lease is still held.

        Raises:
            LeaseLostError: it is not, or that can't be told; it stays lost from then on.
        """

    def release(self) -> None:
        """Give it back; does nothing when it is not held."""


@contextmanager
def holding(lease: Lease, job: str, wait: float) -> Iterator[None]:
    """Hold the lease for the time of a `with` block, and give it back however that ends.

    Raises:
        SinkError: as `acquire`; the block has not run then.
    """
    lease.acquire(job, wait)
    try:
        yield
    finally:
        lease.release()


def ask_until(ask: Callable[[], None], wait: float, pause: float) -> None:
    """Ask for a lease at least once, and again while another job has it or nobody answers.

    Args:
        ask: raises LeaseHeldError or LeaseUnansweredError when it is to be asked again.
        wait: seconds after which the last error is raised.
        pause: the longest pause in between, in seconds; its length is left to chance.
    """
    retry = retry_if_exception_type((LeaseHeldError, LeaseUnansweredError))
    pauses = wait_random(pause / 2, pause)
    Retrying(retry=retry, stop=stop_after_delay(wait), wait=pauses, reraise=True)(ask)
