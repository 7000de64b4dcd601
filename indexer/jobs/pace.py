"""The default pace of the jobs, which their commands show in `--help`."""

from typing import Final

# Changes in one micro-batch, which readers see together.
MICRO_BATCH: Final = 2_000
# Documents a second that a follower compares between its micro-batches.
RECONCILE_RATE: Final = 500.0
# Documents a second of `index verify`; this leaves a follower time for its micro-batches.
VERIFY_RATE: Final = 5_000.0
