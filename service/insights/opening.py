"""Opens the configured store of the counts of queries."""

from pathlib import Path
from typing import Literal

from service.insights.protocol import InsightStore
from service.redis.access import RedisAccess

InsightsKind = Literal["off", "embedded", "redis"]


def open_insights(kind: InsightsKind, path: Path, redis: RedisAccess, prefix: str) -> InsightStore | None:
    """Open the store, which the caller closes; None where queries are not counted."""
    if kind == "off":
        return None
    if kind == "redis":
        from service.insights.redis import RedisInsights

        return RedisInsights(redis, prefix)
    from service.insights.sqlite import SqliteInsights

    return SqliteInsights(path)
