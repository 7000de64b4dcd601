"""/health, /ready and /version: what those who run the service ask it (O1)."""

import re
from datetime import datetime, timedelta
from typing import Final

from service.errors import NotReadyError, ServiceError, VersionUnknownError
from service.live import LiveData
from service.reports.failures import ReportsUnavailable
from service.reports.protocol import ReportQueue
from service.rest.answers import Answer, Asked, Endpoint, json_answer, problem_answer, stamp_headers
from service.search.failures import BackendUnavailable, NothingPublished, OtherSchema

SERVICE: Final = "shop-directory"

_COMMIT: Final = re.compile("[0-9a-f]{40}")
_UTC: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_READS: Final = ("GET", "HEAD")
_HEALTHY: Final = json_answer({"status": "ok"})
_NOTHING_PUBLISHED: Final = "search: nothing is published yet. Build the index with shop-directory index build."
_OTHER_SCHEMA: Final = (
    "search: what is published has a schema version that this service does not read. "
    "Build the index with the indexer of this service's version."
)
_UNAVAILABLE: Final = "search: the search engine does not answer."


def health_endpoint() -> Endpoint:
    """Alive: a constant, asking nobody."""

    async def answer(_: Asked) -> Answer:
        return _HEALTHY

    return Endpoint(_READS, answer)


def ready_endpoint(live: LiveData, reports: ReportQueue) -> Endpoint:
    """Ready: whether the live generation can be read, the reason when not (G4); degraded without the queue (O1)."""

    async def answer(_: Asked) -> Answer:
        try:
            stamp = await live.stamp()
        except NothingPublished:
            return problem_answer(NotReadyError(_NOTHING_PUBLISHED))
        except OtherSchema:
            return problem_answer(NotReadyError(_OTHER_SCHEMA))
        except (BackendUnavailable, TimeoutError):
            return problem_answer(NotReadyError(_UNAVAILABLE))
        try:
            await reports.depth()
            queue = "ok"
        except ReportsUnavailable:
            queue = "degraded"
        checks = [{"name": "search", "status": "ok"}, {"name": "reports", "status": queue}]
        status = "ready" if queue == "ok" else "degraded"
        return json_answer({"status": status, "checks": checks}, stamp_headers(stamp))

    return Endpoint(_READS, answer)


def version_endpoint(commit: str | None, built_at: str | None) -> Endpoint:
    """Which build runs.

    Args:
        commit: 40 hexadecimal digits.
        built_at: RFC 3339, UTC.
    """
    known = _version(commit, built_at)

    async def answer(_: Asked) -> Answer:
        return known

    return Endpoint(_READS, answer)


def _version(commit: str | None, built_at: str | None) -> Answer:
    try:
        return json_answer({"service": SERVICE, "commit": _commit(commit), "builtAt": _built_at(built_at)})
    except ServiceError as error:
        return problem_answer(error)


def _commit(commit: str | None) -> str:
    if commit is None or _COMMIT.fullmatch(commit) is None:
        raise VersionUnknownError
    return commit


def _built_at(built_at: str | None) -> str:
    if built_at is None or _UTC.fullmatch(built_at) is None:
        raise VersionUnknownError
    try:
        moment = datetime.fromisoformat(built_at)
    except ValueError:
        raise VersionUnknownError from None
    if moment.utcoffset() != timedelta(0):
        raise VersionUnknownError
    return built_at.replace("+00:00", "Z")
