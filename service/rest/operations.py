"""/api/ops/state, /metrics/resources and /metrics: what those who run the service read of it, behind one key.

The key is asked for only when one is configured. Without one the endpoints are open and count as reads of the caller,
so that nobody keeps the engines busy by them; with one, a caller who has it is not counted, and one who has not is
refused before anything is asked, and counted.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from pydantic import SecretStr
from starlette.routing import BaseRoute, Route

from service.calls.admission import Admission
from service.errors import BackendUnavailableError, OpsKeyRequiredError, ServiceError
from service.http.callers import http_caller
from service.http.responses import Answer, Asked, Endpoint, Headers, json_answer, problem_answer
from service.limits.policy import Bucket
from service.observability.exposition import encode_families
from service.observability.processes import process_families
from service.observability.prometheus import PrometheusMetrics
from service.observability.resources import resource_families
from service.observability.scrape_gauges import standing_families
from service.operations.health import HealthProbe, Unavailable
from service.operations.state_document import About, ops_state
from service.runtime.addresses import Proxies
from service.runtime.caller import Channel
from service.runtime.wire import header

OPS_KEY_HEADER: Final = b"x-ops-key"
STATE_PATH: Final = "/api/ops/state"
RESOURCES_PATH: Final = "/metrics/resources"
METRICS_PATH: Final = "/metrics"

_READS: Final = ("GET", "HEAD")
_NO_ACCOUNTS: Final = "The search engine does not tell of the accounts just now; try again in 1 second."


class OpsKey:
    """Who may ask."""

    def __init__(self, key: SecretStr | None, admission: Admission, trusted: Proxies) -> None:
        """Configure the key.

        Args:
            key: None leaves the endpoints open.
            admission: counts the calls.
            trusted: the proxies that tell whose call it is.
        """
        # Hashes are of one length, so comparing them tells nothing of the key's.
        self._key = None if key is None else sha256(key.get_secret_value().strip().encode()).digest()
        self._admission = admission
        self._trusted = trusted

    async def check(self, asked: Asked) -> Headers:
        """Let a request pass.

        Returns:
            What its answer says of the quota.

        Raises:
            OpsKeyRequiredError: a key is configured, and the request has another one or none.
            QuotaExceededError: none is configured, and the caller's reads are used up.
        """
        caller = http_caller(asked.scope, Channel.REST, self._trusted)
        if self._key is None:
            return (await self._admission.admit(caller, Bucket.READS)).headers
        given = header(asked.headers, OPS_KEY_HEADER)
        if given is not None and hmac.compare_digest(sha256(given.encode("latin-1")).digest(), self._key):
            return ()
        await self._admission.count_refused(caller)
        raise OpsKeyRequiredError


def state_endpoint(key: OpsKey, probe: HealthProbe, about: About) -> Endpoint:
    """GET /api/ops/state: 200 with whatever is known, also when parts are away; each says so for itself."""

    async def answer(_: Asked) -> Answer:
        state = ops_state(about, await probe.snapshot(), datetime.now(UTC))
        return json_answer(state.model_dump(mode="json"))

    return _behind(key, answer)


def resources_endpoint(key: OpsKey, probe: HealthProbe) -> Endpoint:
    """GET /metrics/resources: 503 when the engine is away, for an empty exposition would say that there are none."""

    async def answer(asked: Asked) -> Answer:
        found = await probe.generations()
        if isinstance(found, Unavailable):
            raise BackendUnavailableError(_NO_ACCOUNTS)
        families = resource_families(found.operations)
        written = encode_families(families, header(asked.headers, b"accept"))
        return Answer(200, written.body, written.media_type)

    return _behind(key, answer)


def metrics_endpoint(key: OpsKey, probe: HealthProbe, about: About, metrics: PrometheusMetrics) -> Endpoint:
    """GET /metrics: what has been counted, and what stands just now; a part that is away is `up` 0."""

    async def answer(asked: Asked) -> Answer:
        standing = standing_families(about.service, await probe.snapshot())
        accept = header(asked.headers, b"accept")
        # Files of other workers and of the system are read for it.
        written = await asyncio.to_thread(
            lambda: encode_families([*metrics.families(), *standing, *process_families(metrics.workers())], accept)
        )
        return Answer(200, written.body, written.media_type)

    return _behind(key, answer)


def operations_routes(key: OpsKey, probe: HealthProbe, about: About, metrics: PrometheusMetrics) -> list[BaseRoute]:
    """The three routes. They stand beside the gate: whoever is on call must get in when nobody else does."""
    return [
        Route(STATE_PATH, endpoint=state_endpoint(key, probe, about)),
        Route(RESOURCES_PATH, endpoint=resources_endpoint(key, probe)),
        Route(METRICS_PATH, endpoint=metrics_endpoint(key, probe, about, metrics)),
    ]


def _behind(key: OpsKey, answer: Callable[[Asked], Awaitable[Answer]]) -> Endpoint:
    async def checked(asked: Asked) -> Answer:
        counted: Headers = ()
        try:
            counted = await key.check(asked)
            answered = await answer(asked)
        except ServiceError as error:
            return problem_answer(error, counted)
        return Answer(answered.status, answered.body, answered.media_type, counted)

    return Endpoint(_READS, checked)
