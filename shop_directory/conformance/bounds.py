"""The bounds of a run of `check`."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a run may use: seconds for one whole response and for the run, requests, and those in flight."""

    timeout: float = 10.0
    within: float = 300.0
    requests: int = 1000
    concurrency: int = 4


USUAL: Final = Bounds()
