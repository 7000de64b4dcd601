"""The probes /health, /ready and /version (O1)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from starlette.requests import Request

from service.calls.live_data import LiveData
from service.errors import NotReadyError, VersionUnknownError
from service.http.messages import (
    READING,
    Answer,
    Endpoint,
    constant_endpoint,
    json_answer,
    problem_answer,
    stamp_headers,
)
from service.identity import SERVICE
from service.limits.policy import READINESS_KEY, READINESS_QUOTA, Limiter, LimiterUnavailable
from service.operations import HealthProbe, Unavailable
from service.reports.protocol import Reason, ReportStore, ReportsUnavailable
from service.settings.service import Settings
from service.tools.tool import ToolResponse, is_none
from shop_directory.build_stamp import stamp_of_build
from shop_directory.search.failures import BackendUnavailable, GenerationDamaged, NothingPublished, OtherSchema
from shop_directory.search.protocol import SearchBackend

_TIMEOUT_SECONDS: Final = 0.5
_CACHE_SECONDS: Final = 1.0
_NOT_COUNTED: Final = "The quotas of reports can't be counted."
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


class _CachedCheck:
    """A check whose result, the reason of a failure or None, counts for a second."""

    def __init__(self, check: Callable[[], Awaitable[str | None]]) -> None:
        self._check = check
        self._failure: str | None = None
        self._valid_until = float("-inf")
        self._lock = asyncio.Lock()

    async def failure(self) -> str | None:
        async with self._lock:
            if time.monotonic() >= self._valid_until:
                self._failure = await self._check()
                self._valid_until = time.monotonic() + _CACHE_SECONDS
            return self._failure


async def _no_reports(limiter: Limiter, queue: ReportStore) -> str | None:
    """Why no report can be taken, which needs the limiter and the queue, without secrets; None if one can."""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            await limiter.hit(READINESS_KEY, READINESS_QUOTA)
            await queue.check()
    except ReportsUnavailable as error:
        return error.reason
    except LimiterUnavailable:
        return _NOT_COUNTED
    except TimeoutError:
        return Reason.NO_ANSWER
    return _NOT_COUNTED if limiter.degraded else None


async def _missing_changes(probe: HealthProbe) -> str | None:
    """The changes that the indexer reports as missing with the live generation; None if none are known to be."""
    found = await probe.generations()
    operations = None if isinstance(found, Unavailable) else found.operations
    missing = None if operations is None else operations.missing
    return None if missing is None else f"{str(missing).capitalize()}."


class Health(ToolResponse):
    """The process is alive."""

    status: Literal["ok"]


class Check(ToolResponse):
    """The state of one part."""

    name: str
    status: Literal["ok", "degraded"]
    reason: str | SkipJsonSchema[None] = Field(
        None, description="Why it is degraded, in plain language; absent when ok.", exclude_if=is_none
    )


class Ready(ToolResponse):
    """The service can answer from data."""

    status: Literal["ready", "degraded"]
    checks: tuple[Check, ...]


class Version(ToolResponse):
    """The build that runs."""

    service: str
    commit: str = Field(pattern="^[0-9a-f]{40}$")
    built_at: str = Field(serialization_alias="builtAt", json_schema_extra={"format": "date-time"})


def ready_endpoint(
    search: SearchBackend, live: LiveData, limiter: Limiter, queue: ReportStore, draining: asyncio.Event
) -> Endpoint:
    """Whether the live generation can be read and its typeahead is open, and why not (G4).

    The service is degraded while no report can be taken (O1), and while changes are missing. A process that is being
    stopped is not ready.
    """
    reports = _CachedCheck(partial(_no_reports, limiter, queue))
    changes = _CachedCheck(partial(_missing_changes, HealthProbe(search, queue, _TIMEOUT_SECONDS)))

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
            reason = search.typeahead_state().reason
            return problem_answer(NotReadyError(f"typeahead: {reason}." if reason else _UNAVAILABLE))
        if (state := search.typeahead_state()).status != "ready":
            return problem_answer(NotReadyError(f"typeahead: {state.reason or state.status}."))
        failure = await reports.failure()
        taken = Check(name="reports", status="ok" if failure is None else "degraded", reason=failure)
        checks = [Check(name="search", status="ok"), Check(name="typeahead", status="ok"), taken]
        if (missing := await changes.failure()) is not None:
            checks.append(Check(name="changes", status="degraded", reason=missing))
        is_whole = all(check.status == "ok" for check in checks)
        ready = Ready(status="ready" if is_whole else "degraded", checks=tuple(checks))
        return json_answer(ready.model_dump(), stamp_headers(stamp))

    return Endpoint(READING, answer)


def version_endpoint(settings: Settings) -> Endpoint:
    """Which build runs; 503 when it is unknown."""
    stamp = stamp_of_build(settings.commit, settings.built_at)
    if stamp is None:
        return constant_endpoint(problem_answer(VersionUnknownError()))
    version = Version(service=SERVICE, commit=stamp.commit, built_at=stamp.built_at)
    return constant_endpoint(json_answer(version.model_dump(by_alias=True)))
