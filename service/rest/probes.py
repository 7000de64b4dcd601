"""/health, /ready and /version: what those who run the service ask it (O1)."""

from typing import Final

from service.build_stamp import BuildStamp
from service.draining import Draining
from service.errors import NotReadyError, VersionUnknownError
from service.live import LiveData
from service.rest.answers import Answer, Asked, Endpoint, json_answer, problem_answer, stamp_headers
from service.rest.reports_check import ReportsCheck
from service.search.failures import BackendUnavailable, NothingPublished, OtherSchema

SERVICE: Final = "shop-directory"

_READS: Final = ("GET", "HEAD")
_HEALTHY: Final = json_answer({"status": "ok"})
_NOTHING_PUBLISHED: Final = "search: nothing is published yet. Build the index with shop-directory index build."
_OTHER_SCHEMA: Final = (
    "search: what is published has a schema version that this service does not read. "
    "Build the index with the indexer of this service's version."
)
_DRAINING: Final = "service: this process is being stopped. Send requests to another one."
_UNAVAILABLE: Final = "search: the search engine does not answer."


def health_endpoint() -> Endpoint:
    """Alive: a constant, asking nobody."""

    async def answer(_: Asked) -> Answer:
        return _HEALTHY

    return Endpoint(_READS, answer)


def ready_endpoint(live: LiveData, reports: ReportsCheck, draining: Draining) -> Endpoint:
    """Ready: whether the live generation can be read, or why not (G4); degraded while no report can be taken (O1).

    Once the process is on its way out it is not ready, whatever else is.
    """

    async def answer(_: Asked) -> Answer:
        if draining.begun:
            return problem_answer(NotReadyError(_DRAINING))
        try:
            stamp = await live.stamp()
        except NothingPublished:
            return problem_answer(NotReadyError(_NOTHING_PUBLISHED))
        except OtherSchema:
            return problem_answer(NotReadyError(_OTHER_SCHEMA))
        except (BackendUnavailable, TimeoutError):
            return problem_answer(NotReadyError(_UNAVAILABLE))
        queue = "ok" if await reports.passes() else "degraded"
        checks = [{"name": "search", "status": "ok"}, {"name": "reports", "status": queue}]
        status = "ready" if queue == "ok" else "degraded"
        return json_answer({"status": status, "checks": checks}, stamp_headers(stamp))

    return Endpoint(_READS, answer)


def version_endpoint(stamp: BuildStamp | None) -> Endpoint:
    """Which build runs; 503 when it does not know.

    Args:
        stamp: what the build says of itself.
    """
    if stamp is None:
        known = problem_answer(VersionUnknownError())
    else:
        known = json_answer({"service": SERVICE, "commit": stamp.commit, "builtAt": stamp.built_at})

    async def answer(_: Asked) -> Answer:
        return known

    return Endpoint(_READS, answer)
