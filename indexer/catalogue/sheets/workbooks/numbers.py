"""The texts of a workbook's numbers: as their cells show them where that says more, times as in ISO 8601."""

import re
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import category

# A quoted text, an escaped character, padding, a currency, a condition or colour or elapsed time, any other character.
_TOKEN: Final = re.compile(r'"([^"]*)"|\\(.)|[_*](?:.)|\[\$([^\]-]*)(?:-[^\]]*)?\]|\[([^\]]*)\]|(.)', re.DOTALL)
_ELAPSED: Final = re.compile(r"h+|m+|s+", re.IGNORECASE)
_DATE_LETTERS: Final = frozenset("ymdhs")
_DIGITS: Final = re.compile("0{2,}")
# What would be ambiguous as a text.
_THREE_DECIMALS: Final = re.compile(r"-?\d+\.\d{3}")
_DAY_MS: Final = 86_400_000
# The day after the last one of Excel, 9999-12-31.
_END: Final = 2_958_466
# The days from 1899-12-30, and from 1904-01-01, to the days that a serial number of either system means.
_FIRST: Final = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001 - a sheet has no zone
# Excel counts a day 1900-02-29, so that the numbers before it are of the next day.
_FALSE_DAY: Final = 60


class NumberFormat(NamedTuple):
    """How a cell shows its number; a number of `digits` begins with zeros."""

    is_time: bool = False
    is_elapsed: bool = False
    is_percent: bool = False
    digits: int = 0
    currency: str = ""


GENERAL: Final = NumberFormat()
# The formats that a workbook need not state, by their numbers in ECMA-376 (18.8.30) and of East Asian editions.
BUILT_IN: Final = {
    **dict.fromkeys((9, 10), NumberFormat(is_percent=True)),
    **dict.fromkeys((*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)), NumberFormat(is_time=True)),
    46: NumberFormat(is_elapsed=True),
}


@lru_cache(maxsize=4_096)
def number_format(code: str) -> NumberFormat:
    """The format of a code such as `0.0%` or `dd.mm.yyyy`, by its section for positive numbers."""
    bare, literals, is_elapsed = "", "", False
    for quoted, escaped, currency, bracket, other in _TOKEN.findall(code):
        if other == ";":
            break
        is_elapsed = is_elapsed or bool(_ELAPSED.fullmatch(bracket))
        if currency.strip():
            return NumberFormat(currency=currency.strip())
        literals += quoted or escaped
        bare += other
    plain = bare.lower().replace("general", "").strip()
    if not is_elapsed and "%" not in plain and _DATE_LETTERS.isdisjoint(plain):
        symbols = "".join(char for char in bare + literals if category(char) == "Sc")
        return NumberFormat(currency=symbols[:1], digits=len(plain) if _DIGITS.fullmatch(plain) else 0)
    is_percent = "%" in plain
    return NumberFormat(is_time=not is_percent and not is_elapsed, is_elapsed=is_elapsed, is_percent=is_percent)


def number_text(value: float, shown: NumberFormat = GENERAL, *, from_1904: bool = False) -> str:
    """The text that a CSV would hold for a number; 0.1 as a percentage is `10%`."""
    if shown.is_percent:
        return f"{value * 100:.15g}%"
    if shown.is_elapsed and abs(value) < _END:
        return str(timedelta(milliseconds=round(value * _DAY_MS)))
    if shown.is_time and 0 <= value < _END:
        return _time_text(value, from_1904=from_1904)
    text = _plain(float(value))
    if shown.digits and text.isdigit():
        return text.zfill(shown.digits)
    return f"{text} {shown.currency}" if shown.currency else text


def _plain(value: float) -> str:
    if value.is_integer():
        return f"{value:.0f}"
    # The digits that a spreadsheet shows, without the noise of a formula; 1.234 is never read as 1234.
    text = f"{value:.15g}"
    return f"{text}0" if _THREE_DECIMALS.fullmatch(text) else text


def _time_text(serial: float, *, from_1904: bool) -> str:
    since = timedelta(milliseconds=round(serial * _DAY_MS))
    if not since.days and not from_1904:
        return (_FIRST[True] + since).time().isoformat()
    if not from_1904 and serial < _FALSE_DAY:
        since += timedelta(days=1)
    at = _FIRST[from_1904] + since
    return at.isoformat() if at.time() != time() else at.date().isoformat()
