"""The defaults of the jobs, which settings and `--help` show without loading the jobs."""

from typing import Final

# The share of the live generation's public shops that a build may lose.
MOST_SHRINK: Final = 0.2
# Changes in one micro-batch, which readers see together.
MICRO_BATCH: Final = 2_000
# Documents a second that a follower compares between its micro-batches.
RECONCILE_RATE: Final = 500.0
# Documents a second of `index verify`; this leaves a follower time for its micro-batches.
VERIFY_RATE: Final = 5_000.0
