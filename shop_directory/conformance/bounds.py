"""The bounds of a run of `check`."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a run may use, however slow or hostile the service is.

    `timeout` is in seconds for one response, from the first byte sent to the last one read; `within` is for the whole
    run; `concurrency` bounds the requests in flight.
    """

    timeout: float = 10.0
    within: float = 300.0
    requests: int = 1000
    concurrency: int = 4


USUAL: Final = Bounds()
