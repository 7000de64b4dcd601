"""The service on the sample catalogue in all the states that it can be met in, so that each error can really be had."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from service.app import create_app
from service.limits.policy import ANONYMOUS, DEFAULT_CLASS, WITH_TOKEN, QuotaClass
from service.search.failures import BackendUnavailable, NothingPublished
from service.settings.service import Settings
from tests.rules.security.canary import Fuse, Layer, fused, fused_app
from tests.rules.transports.conftest import BUILT_AT, COMMIT
from tests.rules.transports.test_probes_and_headers import FailingBackend
from tests.support.sample import sample_service
from tests.support.served import served

_ONE: Final = QuotaClass(reads=1, suggest=1, reports=1)
_OVERLOADED: Final = 503


@dataclass(frozen=True, slots=True)
class States:
    """Base URLs of the same service.

    Attributes:
        whole: it knows its build, has all its parts, and is asked within its quotas.
        restricted: an operations key is configured, and no list of more than ten coupons.
        used_up: one call of each kind is the quota.
        broken: counting a call fails with an exception.
        away: its search engine does not answer, and it does not know its build.
        empty: nothing is published for it.
        full: it works on one request at a time, and on one that does not end.
        token: counts in all of them.
        gate: a fuse that, while it is set, lets no request in, but fails.
    """

    whole: str
    restricted: str
    used_up: str
    broken: str
    away: str
    empty: str
    full: str
    token: str
    gate: Fuse


@contextmanager
def states(folder: Path) -> Iterator[States]:
    """Build the sample in a folder, and serve it in each state."""
    with ExitStack() as opened:
        sample = opened.enter_context(sample_service(folder))

        def settings(**given: Any) -> Settings:  # noqa: ANN401 - any setting
            tokens, reports = folder / "tokens.sqlite", folder / "reports.sqlite"
            found: dict[str, Any] = {"data_dir": sample.index, "token_file": tokens, "reports_file": reports}
            found |= {"quota_anonymous": ANONYMOUS, "quota_classes": {DEFAULT_CLASS: WITH_TOKEN}}
            return Settings(**found | {"request_timeout": 10.0, "suggest_cache_mb": 0} | given)

        def service(search: FailingBackend | None = None, **given: Any) -> str:  # noqa: ANN401 - any setting
            return opened.enter_context(served(create_app(settings(**given), search=search)))

        fuse, gate = Fuse(folder / "limiter"), Fuse(folder / "gate")
        fuse.set(Layer.LIMITER)
        with fused(fuse):
            broken = opened.enter_context(served(fused_app(settings(), fuse)))
        full = service(FailingBackend(None), max_concurrency=1, request_timeout=60.0)
        opened.enter_context(_filled(full))
        at = States(
            whole=service(commit=COMMIT, built_at=BUILT_AT),
            restricted=service(ops_key=SecretStr("an-operations-key"), most_coupons_rest=10),
            used_up=service(quota_anonymous=_ONE, quota_classes={DEFAULT_CLASS: _ONE}),
            broken=broken,
            away=service(FailingBackend(BackendUnavailable("away"))),
            empty=service(FailingBackend(NothingPublished("nothing"))),
            full=full,
            token=sample.token,
            gate=gate,
        )
        gate.set(None)
        opened.enter_context(fused(gate))
        yield at


@contextmanager
def _filled(base: str) -> Iterator[None]:
    """Within, the one slot of a service is taken."""
    first, second = (HTTPConnection(urlsplit(base).netloc, timeout=0.5) for _ in range(2))
    try:
        first.request("GET", "/suggest?q=a", headers={"connection": "close"})
        while True:
            second.request("GET", "/suggest?q=a", headers={"connection": "close"})
            try:
                refused = second.getresponse().status == _OVERLOADED
            except TimeoutError:
                # This one has the slot, and the first one was turned away.
                refused = False
                first, second = second, first
            second.close()
            if refused:
                break
        yield
    finally:
        first.close()
        second.close()
