"""Values that both sides read and write in one form: timestamps and coupon codes.

Timestamps are RFC 3339 in UTC with Z on the wire, and microseconds since 1970 where engines compare them. A coupon code
is normalised to NFC first; it is 1 to 64 letters, marks and numbers of any script, or `._+*%!#&$/@-` (A9).
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from unicodedata import category, normalize

from index_mappings.text import without_ignorable

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Open ends, beyond any date of datetime.
LONG_AGO: Final = -(2**62)
FAR_AHEAD: Final = 2**62

MAX_CODE: Final = 64
# What every dialect of regular expressions can state, for JSON Schema: ASCII and controls of no code.
_CHARACTER: Final = r"""[^\x00-\x20"'(),:;<=>?\[\\\]^`{|}~\x7f-\xa0]"""
CODE_PATTERN: Final = f"^{_CHARACTER}+$"
# The same for a report, where spaces around a code are trimmed, with the length, which does not count them.
REPORTED_CODE_PATTERN: Final = rf"^[ \xa0]*{_CHARACTER}{{1,{MAX_CODE}}}[ \xa0]*$"
ALLOWED_CODE: Final = f"1 to {MAX_CODE} letters, marks and numbers of any script, or ._+*%!#&$/@-"

_PUNCTUATION: Final = frozenset("._+*%!#&$/@-")
_ASCII: Final = re.compile(r"[A-Za-z0-9._+*%!#&$/@-]+")


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


def normal_code(text: str) -> str | None:
    """The coupon code in NFC, or None if the text is not a code."""
    code = normalize("NFC", text)
    if len(code) > MAX_CODE or without_ignorable(code) != code:
        return None
    if _ASCII.fullmatch(code):
        return code
    return code if code and all(category(char)[0] in "LMN" or char in _PUNCTUATION for char in code) else None


def folded_code(code: str) -> str:
    """The form by which codes are compared, which ignores case (Q5)."""
    return normalize("NFC", code.casefold())
