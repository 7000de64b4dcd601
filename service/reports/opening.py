"""Opens the report queue that the settings name, for the service and for the operator's commands alike.

Nothing is asked of the store yet: one that is away is told of by the first call. A store is imported when it is opened.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from service.redis.access import DEFAULT_REDIS, RedisAccess
from service.reports.protocol import ReportQueue

DAY_SECONDS: Final = 86_400.0

QueueKind = Literal["embedded", "redis"]


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Where reports are kept, and how.

    Attributes:
        kind: a file of this machine, or Redis.
        path: the file; used when embedded.
        redis: the way to Redis; used with it.
        prefix: what all keys begin with; used with Redis.
        window_seconds: how long the same report of a source appends nothing more (Q5).
        timeout: seconds that a call may take.
        max_deliveries: how often a re-check is handed out before it becomes a dead letter.
    """

    kind: QueueKind = "embedded"
    path: Path = Path("var/reports.sqlite")
    redis: RedisAccess = DEFAULT_REDIS
    prefix: str = "shopdir"
    window_seconds: float = DAY_SECONDS
    timeout: float = 1.5
    max_deliveries: int = 5


def open_queue(settings: QueueSettings) -> ReportQueue:
    """The queue; who opens it closes it."""
    if settings.kind == "redis":
        from service.reports.redis import RedisReports

        return RedisReports(
            settings.redis,
            settings.prefix,
            window_seconds=settings.window_seconds,
            timeout=settings.timeout,
            max_deliveries=settings.max_deliveries,
        )
    from service.reports.sqlite import SqliteReports

    return SqliteReports(
        settings.path,
        window_seconds=settings.window_seconds,
        timeout=settings.timeout,
        max_deliveries=settings.max_deliveries,
    )
