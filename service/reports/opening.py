"""Opens the configured report queue, for the service and for the operator's commands.

The store connects at the first call, which raises if it is unavailable. A store is imported when it is opened.
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
    """Where and how reports are stored.

    Attributes:
        kind: a file of this machine, or Redis.
        path: the file, if the kind is "embedded".
        redis: how Redis is reached, if the kind is "redis".
        prefix: the prefix of keys in Redis.
        window_seconds: how long a repetition of the same report appends nothing (Q5).
        timeout: seconds that a call may take.
    """

    kind: QueueKind = "embedded"
    path: Path = Path("var/reports.sqlite")
    redis: RedisAccess = DEFAULT_REDIS
    prefix: str = "shopdir"
    window_seconds: float = DAY_SECONDS
    timeout: float = 1.5


def open_queue(settings: QueueSettings) -> ReportQueue:
    """Open the queue; the caller closes it."""
    if settings.kind == "redis":
        from service.reports.redis import RedisReports

        return RedisReports(
            settings.redis, settings.prefix, window_seconds=settings.window_seconds, timeout=settings.timeout
        )
    from service.reports.sqlite import SqliteReports

    return SqliteReports(settings.path, window_seconds=settings.window_seconds, timeout=settings.timeout)
