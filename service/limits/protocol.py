"""What the service asks of a limiter: one step that decides, counts and tells what is left.

The promise of every limiter: no stretch of `window` seconds, wherever it begins, holds more than `limit` allowed units
of a key; and after `window` seconds of quiet the whole quota is there at once. To keep both in a few bytes a key, units
that come within a sixtieth of the window are forgotten together, when the last of them is a window old: an early one
counts up to that sixtieth too long, never too short. What is refused does not count. A limiter that takes units in
blocks (`service.limits.blocks`) keeps both but for a bound that it states.

Why our own: the library `limits` (5.8) decides by `hit` and tells what is left by `get_window_stats`, two calls that
another caller's can come between, where headers on every answer need one; its extra for Redis wants a client below
version 8. Why not a leaky bucket (GCRA): one that takes a burst of the whole quota lets nearly twice the quota through
in the first window, so "120 a minute" would not be true.
"""

from typing import Final, NamedTuple, Protocol

from service.limits.policy import Quota

SLOTS: Final = 60


class LimiterUnavailable(Exception):  # noqa: N818 - it names the state that the fallback acts on
    """The limiter did not answer, or not in time. The text is for the log, never for a caller (E5)."""


class LimiterNotWaitedFor(LimiterUnavailable):
    """The request's own deadline came first: it says nothing of the limiter."""


class Decision(NamedTuple):
    """What became of a hit. A named tuple: it is made on every key press, and costs less than half of a dataclass.

    Attributes:
        allowed: whether it may go on; only then it was counted.
        limit: of the quota.
        remaining: units that could be taken right after it.
        reset_seconds: whole seconds, at least 1, after which some of what is taken comes back.
        retry_after: whole seconds after which the same hit would be allowed if nobody else came; None when it is.
    """

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: int
    retry_after: int | None


class Limiter(Protocol):
    """Counts units against quotas."""

    @property
    def degraded(self) -> bool:
        """Whether it decided last without what it should decide by."""

    def take(self, key: str, quota: Quota) -> Decision | None:
        """Take one unit at once from what is at hand; never waits, never raises.

        Returns:
            The decision; None when only `hit` can tell, which must then be awaited instead.
        """

    async def hit(self, key: str, quota: Quota, cost: int = 1) -> Decision:
        """Take units from a key's quota if they are there.

        Args:
            key: whose; it belongs to one bucket.
            quota: how much there is.
            cost: units, at least 1.

        Raises:
            LimiterUnavailable: nothing was decided.
        """

    async def close(self) -> None:
        """Release connections."""


def slot_milliseconds(quota: Quota) -> int:
    """How close together units must come to be forgotten together."""
    return max(1, quota.window * 1000 // SLOTS)


def whole_seconds(milliseconds: int) -> int:
    """Rounded up: who waits that long has waited long enough."""
    return max(1, -(-milliseconds // 1000))
