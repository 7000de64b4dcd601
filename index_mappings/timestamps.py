"""Moments as the wire has them (RFC 3339, UTC, Z) and as engines compare them (microseconds since 1970)."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Beyond any date of the calendar that datetime knows: an open end.
LONG_AGO: Final = -(2**62)
FAR_AHEAD: Final = 2**62


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def wire_moment(moment: datetime) -> str:
    """RFC 3339 in UTC, with a fraction only where there is one."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='microseconds' if utc.microsecond else 'seconds')}Z"


def optional_moment(moment: datetime | None) -> str | None:
    """The same for a moment that may be missing."""
    return None if moment is None else wire_moment(moment)
