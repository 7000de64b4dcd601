"""What a run may take: no service, however slow or hostile, makes it take more."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may take.

    Attributes:
        timeout: seconds that one answer may take, from the first byte sent to the last one read.
        within: seconds that the run may take in all.
        requests: how many requests it may send.
        concurrency: how many at a time.
    """

    timeout: float = 10.0
    within: float = 300.0
    requests: int = 1000
    concurrency: int = 4


USUAL: Final = Bounds()
