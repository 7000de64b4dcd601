"""Timestamps on the wire (RFC 3339, UTC, Z), and as engines compare them (microseconds since 1970)."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Open ends, beyond any date of datetime.
LONG_AGO: Final = -(2**62)
FAR_AHEAD: Final = 2**62


def microseconds(timestamp: datetime) -> int:
    """Microseconds since 1970, without rounding."""
    return (timestamp - _EPOCH) // _MICROSECOND


def wire_timestamp(timestamp: datetime) -> str:
    """RFC 3339 in UTC, with a fraction of a second only if it is not zero."""
    utc = timestamp.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='microseconds' if utc.microsecond else 'seconds')}Z"


def optional_timestamp(timestamp: datetime | None) -> str | None:
    """`wire_timestamp` of a timestamp that may be missing."""
    return None if timestamp is None else wire_timestamp(timestamp)
