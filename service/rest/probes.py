"""The probes /health, /ready and /version (O1)."""

from asyncio import Event
from typing import Final

from starlette.requests import Request

from service.calls.live_data import LiveData
from service.errors import NotReadyError, VersionUnknownError
from service.http.messages import Answer, Endpoint, json_answer, problem_answer, stamp_headers
from service.rest.report_readiness import ReportReadiness
from service.search.failures import BackendUnavailable, GenerationDamaged, NothingPublished, OtherSchema
from shop_directory.build_stamp import BuildStamp

SERVICE: Final = "shop-directory"

_READS: Final = ("GET", "HEAD")
_HEALTHY: Final = json_answer({"status": "ok"})
_NOTHING_PUBLISHED: Final = (
    "search: nothing is published yet. Build the index with shop-directory index build; the log of this process says "
    "where it looks."
)
_OTHER_SCHEMA: Final = (
    "search: what is published has a schema version that this service does not read. "
    "Build the index with the indexer of this service's version."
)
_MEND: Final = "Build again, or roll back to the previous generation."
_DRAINING: Final = "service: this process is being stopped. Send requests to another one."
_UNAVAILABLE: Final = "search: the search engine does not answer."


def health_endpoint() -> Endpoint:
    """The process is alive: a constant answer."""

    async def answer(_: Request) -> Answer:
        return _HEALTHY

    return Endpoint(_READS, answer)


def ready_endpoint(live: LiveData, reports: ReportReadiness, draining: Event) -> Endpoint:
    """Whether the live generation can be read and its typeahead is open, and why not (G4).

    The service is degraded while no report can be taken (O1). A process that is being stopped is not ready.
    """

    async def answer(_: Request) -> Answer:
        if draining.is_set():
            return problem_answer(NotReadyError(_DRAINING))
        try:
            stamp = await live.stamp()
        except NothingPublished:
            return problem_answer(NotReadyError(_NOTHING_PUBLISHED))
        except OtherSchema:
            return problem_answer(NotReadyError(_OTHER_SCHEMA))
        except GenerationDamaged as error:
            return problem_answer(NotReadyError(f"search: {error}. {_MEND}"))
        except BackendUnavailable:
            return problem_answer(NotReadyError(_UNAVAILABLE))
        except TimeoutError:
            # The first request of a process waits until the typeahead is open.
            reason = live.typeahead_state().reason
            return problem_answer(NotReadyError(f"typeahead: {reason}." if reason else _UNAVAILABLE))
        if (state := live.typeahead_state()).status != "ready":
            return problem_answer(NotReadyError(f"typeahead: {state.reason or state.status}."))
        queue = {"name": "reports", "status": "ok"}
        if (failure := await reports.failure()) is not None:
            queue |= {"status": "degraded", "reason": failure}
        status = "ready" if failure is None else "degraded"
        checks = [{"name": "search", "status": "ok"}, {"name": "typeahead", "status": "ok"}, queue]
        return json_answer({"status": status, "checks": checks}, stamp_headers(stamp))

    return Endpoint(_READS, answer)


def version_endpoint(stamp: BuildStamp | None) -> Endpoint:
    """Which build runs; 503 when it is unknown.

    Args:
        stamp: the stamp of the build.
    """
    if stamp is None:
        constant = problem_answer(VersionUnknownError())
    else:
        constant = json_answer({"service": SERVICE, "commit": stamp.commit, "builtAt": stamp.built_at})

    async def answer(_: Request) -> Answer:
        return constant

    return Endpoint(_READS, answer)
