"""The bounds of a run, which hold however slow or hostile the service is."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a run may use.

    Attributes:
        timeout: seconds for one response, from the first byte sent to the last one read.
        within: seconds for the whole run.
        requests: the number of requests sent.
        concurrency: the number of requests in flight.
    """

    timeout: float = 10.0
    within: float = 300.0
    requests: int = 1000
    concurrency: int = 4


USUAL: Final = Bounds()
