"""How slow this processor is, so that bounds of processor time hold on any machine."""

from random import Random
from time import process_time_ns
from typing import Final

_ROUNDS: Final = 9
# On the faster machine of docs/performance.md; computed from 35 on one on which requests take 1.9 times as long.
_USUAL_MS: Final = 18.0


def slowness() -> float:
    """How many times as long this processor takes as that of the faster machine of docs/performance.md, at least 1.

    It is that of the moment: a processor that shares its core, or is slowed down, takes longer.
    """
    return max(1.0, min(_work_ms() for _ in range(_ROUNDS)) / _USUAL_MS)


def _work_ms() -> float:
    """The processor time of a fixed piece of work of the interpreter, in milliseconds."""
    start = process_time_ns()
    chance = Random(1)  # noqa: S311 - the same each time
    counts: dict[str, int] = {}
    for _ in range(20_000):
        text = f"{chance.randrange(5_000):x}"
        counts[text[:3]] = counts.get(text[:3], 0) + len(text)
    sorted(counts.items(), key=lambda one: one[1])
    return (process_time_ns() - start) / 1e6
