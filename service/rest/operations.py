"""The operators' endpoints /api/ops/state, /metrics/resources and /metrics, protected by a key if one is configured.

Without a key the endpoints are open, and a request counts as a read of the caller. Its Host must name this machine,
unless the settings open the endpoints to other machines: otherwise a web page whose name resolves to this machine (DNS
rebinding) could read them in a browser. With a key, any request without it is counted and refused.
"""

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from service.calls.admission import Admission
from service.errors import BackendUnavailableError, MisdirectedRequestError, OpsKeyRequiredError, ServiceError
from service.http.messages import (
    OPS_KEY_HEADER,
    READING,
    Answer,
    Endpoint,
    Headers,
    header,
    http_caller,
    json_answer,
    problem_answer,
)
from service.identity import SERVICE, VERSION
from service.insights.counting import InsightCounter
from service.limits.policy import Bucket
from service.observability.prometheus import (
    PrometheusMetrics,
    encode_families,
    process_families,
    resource_families,
    scrape_gauge_families,
)
from service.operations import HealthProbe, ServiceState, Unavailable, flags_of, ops_state
from service.reports.protocol import ReportStore
from service.runtime.caller import Channel, Proxies, names_loopback
from service.settings.service import Settings
from shop_directory.build_stamp import stamp_of_build
from shop_directory.search.protocol import SearchBackend

STATE_PATH: Final = "/api/ops/state"
RESOURCES_PATH: Final = "/metrics/resources"
METRICS_PATH: Final = "/metrics"

_NO_ACCOUNTS: Final = "The accounts can't be read from the search engine just now; try again in 1 second."


class _OpsKey:
    """The check of the operations key; without one the endpoints are open, to any Host only if the settings say so."""

    def __init__(self, settings: Settings, admission: Admission, trusted: Proxies) -> None:
        key = settings.ops_key
        # Hashes have one length, so a comparison does not disclose the length of the key.
        self._key = None if key is None else sha256(key.get_secret_value().strip().encode()).digest()
        self._open = settings.open_operations
        self._admission, self._trusted = admission, trusted

    async def check(self, request: Request) -> Headers:
        """Check the key of a request, or count the request where no key is configured; returns its quota headers.

        Raises OpsKeyRequiredError for a missing or wrong key; where none is configured, MisdirectedRequestError if Host
        does not name this machine, and QuotaExceededError.
        """
        caller = http_caller(request.scope, Channel.REST, self._trusted)
        headers = request.scope["headers"]
        if self._key is None:
            if not self._open and not names_loopback(header(headers, b"host") or ""):
                raise MisdirectedRequestError
            return (await self._admission.admit(caller, Bucket.READS)).headers
        given = header(headers, OPS_KEY_HEADER)
        if given is not None and hmac.compare_digest(sha256(given.encode("latin-1")).digest(), self._key):
            return ()
        await self._admission.count_refused(caller)
        raise OpsKeyRequiredError


def operations_routes(  # noqa: PLR0917 - what three endpoints use
    settings: Settings,
    search: SearchBackend,
    queue: ReportStore,
    insights: InsightCounter | None,
    admission: Admission,
    trusted: Proxies,
    metrics: PrometheusMetrics,
) -> list[BaseRoute]:
    """The three routes. They do not pass the gate, so that operators can use them during overload."""
    key = _OpsKey(settings, admission, trusted)
    probe = HealthProbe(search, queue, settings.request_timeout, None if insights is None else insights.store)
    build, flags = stamp_of_build(settings.commit, settings.built_at), flags_of(settings)
    service = ServiceState(
        name=SERVICE,
        version=VERSION,
        commit=build and build.commit,
        built_at=build and build.built_at,
        started_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        pid=os.getpid(),
    )

    async def state(_: Request) -> Answer:
        # 200 also when parts are unavailable, each of which is reported as such.
        found = ops_state(service, flags, await probe.snapshot(), datetime.now(UTC))
        return json_answer(found.model_dump(mode="json"))

    async def resources(request: Request) -> Answer:
        found = await probe.generations()
        if isinstance(found, Unavailable):
            # An empty exposition would mean that there are no accounts.
            raise BackendUnavailableError(_NO_ACCOUNTS)
        return Answer(200, *encode_families(resource_families(found.operations), request.headers.get("accept")))

    async def counted(request: Request) -> Answer:
        # `up` is 0 for a part that is unavailable.
        gauges = scrape_gauge_families(service, await probe.snapshot())
        accept = request.headers.get("accept")
        # In a thread, as it reads files of other workers and of the system.
        body, media_type = await asyncio.to_thread(
            lambda: encode_families([*metrics.families(), *gauges, *process_families(metrics.workers())], accept)
        )
        return Answer(200, body, media_type)

    answers = {STATE_PATH: state, RESOURCES_PATH: resources, METRICS_PATH: counted}
    return [Route(path, endpoint=_protected(key, answer)) for path, answer in answers.items()]


def _protected(key: _OpsKey, answer: Callable[[Request], Awaitable[Answer]]) -> Endpoint:
    async def checked(request: Request) -> Answer:
        quota: Headers = ()
        try:
            quota = await key.check(request)
            answered = await answer(request)
        except ServiceError as error:
            return problem_answer(error, quota)
        return replace(answered, headers=quota)

    return Endpoint(READING, checked)
