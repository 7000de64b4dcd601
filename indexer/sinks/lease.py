"""The lease: one indexer job at a time for each location of generations (G4).

The lease ends with its job, however that ends. A job that lost its lease must not write any more; if it does, between a
check and a write, the fence of publishing stops it (G1).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from indexer.sinks.failures import SinkError


class LeaseHeldError(SinkError):
    """Another job holds the lease; the message says which and since when."""


class LeaseLostError(SinkError):
    """The lease was lost while the job ran: another job may hold it."""


class LeaseUnansweredError(SinkError):
    """The engine did not answer a request for the lease, whose holder is thus unknown; a retry may help."""


class Lease(Protocol):
    """A handle on the right to write, which at most one job holds; it can't be acquired twice."""

    def acquire(self, job: str, wait: float) -> None:
        """Acquire the lease.

        Args:
            job: shown to jobs that have to wait: build, follow, rollback, prune, verify.
            wait: seconds to wait while another job holds it; 0 tries once.

        Raises:
            LeaseHeldError: another job still holds it.
            SinkError: the engine failed.
        """

    def check(self) -> None:
        """Verify that the lease is still held.

        Raises:
            LeaseLostError: it is not, or that is unknown; it stays lost from then on.
        """

    def release(self) -> None:
        """Release the lease; does nothing if it is not held."""


@contextmanager
def holding(lease: Lease, job: str, wait: float) -> Iterator[None]:
    """Hold the lease during a `with` block, and release it however that ends.

    Raises:
        SinkError: as of `acquire`, before the block runs.
    """
    lease.acquire(job, wait)
    try:
        yield
    finally:
        lease.release()


def acquire_until(attempt: Callable[[], None], wait: float, pause: float) -> None:
    """Attempt to acquire a lease at least once, and again while another job holds it or the engine does not answer.

    Args:
        attempt: raises LeaseHeldError or LeaseUnansweredError if it has to be repeated.
        wait: seconds after which the last error is raised.
        pause: the longest of the random pauses between attempts, in seconds.
    """
    retry = retry_if_exception_type((LeaseHeldError, LeaseUnansweredError))
    pauses = wait_random(pause / 2, pause)
    Retrying(retry=retry, stop=stop_after_delay(wait), wait=pauses, reraise=True)(attempt)
