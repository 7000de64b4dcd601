"""All that a tool may touch."""

from dataclasses import dataclass
from datetime import datetime

from service.reports.protocol import ReportQueue
from service.search.protocol import Snapshot


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call of a tool works with.

    Attributes:
        search: the generation that the whole answer comes from (C2).
        now: the call's one clock reading.
        channel: the door that the call came by, as display policies name it (A5).
        country: the caller's, where a trusted edge says it; None otherwise.
        most_coupons: how many coupons the listing of all shops hands out at this door; None for any number (A6).
        reports: where reports go.
        source: whose report it is: the token's id; None for an anonymous call (Q5).
    """

    search: Snapshot
    now: datetime
    channel: str
    country: str | None
    most_coupons: int | None
    reports: ReportQueue
    source: str | None
