"""How much a follower does at once, unless it is told otherwise: what its command shows and its parts go by."""

from typing import Final

# Changes that are shown at once.
MICRO_BATCH: Final = 2_000
# Documents a second that are compared between two looks at the changes.
RECONCILE_RATE: Final = 500.0
# Documents a second of a verification by itself; it leaves a following job its turns.
VERIFY_RATE: Final = 5_000.0
