"""How often generated tests repeat: as often as they say, but less often in the fast stage."""

import os


def rounds(usual: int) -> int:
    """The number of rounds, at least one; the variable TEST_ROUNDS is the share of the usual number."""
    return max(1, round(usual * float(os.environ.get("TEST_ROUNDS", "1"))))
