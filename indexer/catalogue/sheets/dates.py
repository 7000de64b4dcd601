"""Reads dates and times of sheets; a column's cells together settle whether days come before months."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from typing import Final

from babel import Locale

from indexer.records.faults import UnreadableError

# Orders of day, month and year, as --dates names them, in words.
ORDERS: Final[Mapping[str, str]] = {"dmy": "day first", "mdy": "month first", "ymd": "year first"}
# The order of dates that are written in one order everywhere, such as 2035-12-31 and 31.12.2035.
_FIXED: Final = ""
_LANGUAGES: Final = ("en", "de", "fr", "es", "it", "nl", "pl", "pt", "tr", "sv")
_YEAR_LAST: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{1,2})")
# Such dates with hyphens may have the year first.
_SHORT: Final = re.compile(r"\d\d-\d\d-\d\d")
# Seconds or milliseconds since 1970, from 2001 to 2286.
_UNIX: Final = re.compile(r"([1-9]\d{9})(\d{3})?")
# Seconds from 2010 to 2050; other numbers of ten digits are hardly times, unless a column's name says so.
_PLAUSIBLE: Final = range(1_262_304_000, 2_524_608_000)
_WITHIN: Final = re.compile(r"\b(?:\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2\d{2,4})\b")
_FEW_WORDS: Final = 2
_HALF_A_DAY: Final = 12
# Dates whose form settles the order: 2035-12-31, 20351231, 31. Dezember 2035, Dec 31, 2035.
_SETTLED: Final = (
    re.compile(r"(?P<year>\d{4})([./-])(?P<month>\d{1,2})\2(?P<day>\d{1,2})"),
    re.compile(r"(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)"),
    re.compile(r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?[ -](?:de )?(?P<month>[^\W\d_]+)\.?,?[ -](?:de )?(?P<year>\d{4})"),
    re.compile(r"(?P<month>[^\W\d_]+)\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})"),
)
_CLOCK: Final = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: uhr)?(?: ?(?P<zone>z|utc|gmt|(?:utc|gmt)? ?[+-]\d\d(?::?\d\d)?))?"
)
_WITH_CLOCK: Final = re.compile(r"(?P<day>.+?)(?:[t,]? ?| )(?P<clock>\d{1,2}:\d\d.*)")
_REASON: Final = (
    "must be a date such as 2026-12-31, or with a time 2026-12-31T18:30:00Z; where all days of a column could be"
    " months, --dates dmy or --dates mdy says which come first"
)


def readings_of(text: str) -> Mapping[str, date]:
    """The dates that a text may mean, by the order of its parts; empty where it is none."""
    for form in _SETTLED:
        if found := form.fullmatch(text):
            month = found["month"]
            return _valid(
                {_FIXED: (found["year"], _months().get(month, 0) if month.isalpha() else month, found["day"])}
            )
    if found := _YEAR_LAST.fullmatch(text):
        first, second, year = found[1], found[3], found[4] if len(found[4]) > len("31") else f"20{found[4]:>02}"
        # Points are written behind the numbers of days and months, in this order.
        if found[2] == ".":
            return _valid({_FIXED: (year, second, first)})
        orders = {"dmy": (year, second, first), "mdy": (year, first, second)}
        return _valid(orders | {"ymd": (f"20{first}", second, found[4])} if _SHORT.fullmatch(text) else orders)
    return {}


def _valid(parts: Mapping[str, tuple[str, str | int, str]]) -> Mapping[str, date]:
    found = dict[str, date]()
    for order, (year, month, day) in parts.items():
        with suppress(ValueError):
            found[order] = date(int(year), int(month), int(day))
    return found


@cache
def _months() -> Mapping[str, int]:
    """Months by their names in ten languages, of those that name one month alone."""
    found = dict[str, set[int]]()
    for language in _LANGUAGES:
        for names in Locale(language).months.values():
            for width in ("wide", "abbreviated"):
                for number, name in names[width].items():
                    found.setdefault(name.lower().rstrip("."), set()).add(number)
    return {name: next(iter(numbers)) for name, numbers in found.items() if len(numbers) == 1}


def _split(text: str) -> tuple[str, str]:
    folded = " ".join(text.lower().split())
    found = _WITH_CLOCK.fullmatch(folded)
    return (found["day"], found["clock"]) if found else (folded, "")


def _chosen(readings: Mapping[str, date], order: str | None) -> date | None:
    if order is not None and _FIXED not in readings:
        return readings.get(order)
    return next(iter(readings.values())) if len(set(readings.values())) == 1 else None


def date_or_time(text: str, order: str | None = None) -> str:
    """A bare date, or a date and time, in UTC without an offset; `order` is for dates that do not settle theirs."""
    if unix := _UNIX.fullmatch(text):
        return datetime.fromtimestamp(int(unix[1]), UTC).isoformat()
    day, clock = _split(text)
    found = _chosen(readings_of(day), order)
    if found is not None and not clock:
        return found.isoformat()
    time = _CLOCK.fullmatch(clock)
    if found is not None and time is not None:
        with suppress(ValueError):
            return _at(found, time).isoformat()
    raise UnreadableError(_REASON, text)


def _at(day: date, clock: re.Match[str]) -> datetime:
    hour = int(clock["hour"])
    if clock["half"]:
        if not 1 <= hour <= _HALF_A_DAY:
            raise ValueError(f"{hour} is no hour of half a day")
        hour = hour % _HALF_A_DAY + (_HALF_A_DAY if clock["half"] == "p" else 0)
    fraction = int((clock["fraction"] or "")[:6].ljust(6, "0"))
    return datetime(
        day.year, day.month, day.day, hour, int(clock["minute"]), int(clock["second"] or 0), fraction,
        tzinfo=_zone(clock["zone"] or ""),
    )  # fmt: skip


def _zone(text: str) -> timezone:
    offset = re.sub("z|utc|gmt|[: ]", "", text)
    if not offset:
        return UTC
    ahead = timedelta(hours=int(offset[1:3]), minutes=int(offset[3:] or 0))
    return timezone(-ahead if offset[0] == "-" else ahead)


def timestamp(text: str, order: str | None = None) -> str:
    """A date and time; a bare date is its first second, in UTC."""
    found = date_or_time(text, order)
    return found if "T" in found else f"{found}T00:00:00Z"


def is_date(text: str) -> bool:
    """Whether a text is a date, also one that may mean two, or holds dates and hardly a word more."""
    if unix := _UNIX.fullmatch(text):
        return int(unix[1]) in _PLAUSIBLE
    rest, dates = _WITHIN.subn(" ", text)
    return bool(readings_of(_split(text)[0])) or (dates > 0 and len(re.findall(r"[^\W_]+", rest)) <= _FEW_WORDS)


@dataclass(slots=True)
class DateColumn:
    """The dates of a column, read as a whole: `order` is the one that all of them fit, if they settle it."""

    name: str
    fitting: set[str] | None = None
    # One cell for each order, which does not fit another one.
    shows: dict[str, str] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Note the orders that a cell fits, if it is a date that does not state its order."""
        readings = readings_of(_split(text)[0])
        if not readings or _FIXED in readings:
            return
        self.fitting = set(readings) if self.fitting is None else self.fitting & readings.keys()
        for order in readings if len(readings) == 1 else ():
            self.shows.setdefault(order, text)

    def order(self, stated: str | None) -> str | None:
        """The order that all dates fit, else the one that is stated."""
        if self.fitting is not None and len(self.fitting) == 1:
            return next(iter(self.fitting))
        return stated

    def as_text(self, stated: str | None) -> str | None:
        """How the dates are read, None where their order makes no difference or is not known."""
        order = self.order(stated)
        if self.fitting is None or order is None:
            return None
        by = (
            f"as {self.shows[order][:60]!r} shows" if order in self.shows and order != stated else f"by --dates {order}"
        )
        if order not in self.shows and len(self.fitting) == 1:
            by = "which is the one order that all of them fit"
        return f"Dates of {self.name!r} are read {ORDERS[order]} ({order}), {by}"
