"""Opens the parts that the settings name; only `indexer.acceptance` names concrete backends too.

The modules of a part are imported when it is opened: the clients of OpenSearch and Redis would take a tenth of the time
in which a service starts without them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from service.auth.opening import open_tokens
from service.auth.verifier import TokenVerifier
from service.calls.admission import Admission
from service.calls.dispatch import Dispatcher
from service.calls.live_data import LiveData
from service.insights.counting import InsightCounter
from service.limits.memory import MemoryLimiter
from service.limits.policy import READINESS_KEY, READINESS_QUOTA, Limiter, NamedNetworks, QuotaPolicy
from service.reports.opening import GuardedStore, open_queue
from service.runtime.caller import Channel, Proxies
from service.settings.service import Settings
from service.suggest.responder import SuggestResponder
from service.suggest.wire import text_of
from service.tools.registry import REGISTRY
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.protocol import SearchBackend

_LOG: Final = logging.getLogger(__name__)
# One of several searches of a request must leave time for the others.
_ENGINE_TIMEOUT: Final = 1.5


class Parts:
    """The parts of an application over HTTP or stdio; making them sends no request."""

    def __init__(self, settings: Settings, search: SearchBackend | None = None, metrics: Metrics = NO_METRICS) -> None:
        """Make the parts by the settings, but for a given backend; `close` closes either."""
        self.settings = settings
        self.trusted = Proxies(settings.trusted_proxies, settings.forwarding_header, settings.country_header)
        # Each part is opened after those that it uses, and closed before them.
        self._opened = AsyncExitStack()
        self.search = open_search(settings, metrics) if search is None else search
        self._opened.push_async_callback(self.search.close)
        self.live = LiveData(self.search, settings.request_timeout)
        tokens = open_tokens(settings.token_store, settings.token_file, settings.redis_access, settings.redis_prefix)
        self._opened.push_async_callback(tokens.close)
        verifier = TokenVerifier(tokens, metrics=metrics)
        self._opened.push_async_callback(verifier.close)
        self.limiter = open_limiter(settings, metrics)
        self._opened.push_async_callback(self.limiter.close)
        self.reports = GuardedStore(open_queue(settings.queue_settings), metrics)
        self._opened.push_async_callback(self.reports.close)
        insights = settings.open_insights()
        self.insights = None if insights is None else InsightCounter(insights, text_of)
        if self.insights is not None:
            self._opened.push_async_callback(self.insights.close)
        networks = NamedNetworks(settings.quota_networks)
        policy = QuotaPolicy(settings.quota_anonymous, settings.quota_classes, networks)
        self.admission = Admission(verifier, self.limiter, policy, metrics)
        rest, mcp = settings.most_coupons_rest, settings.most_coupons_mcp
        dispatcher = partial(
            Dispatcher,
            REGISTRY,
            self.live,
            reports=self.reports,
            timeout=settings.request_timeout,
            insights=self.insights,
            most_coupons={Channel.REST: rest, Channel.MCP: mcp, Channel.STDIO: mcp},
        )
        self.dispatcher = dispatcher(self.admission)
        self.responder = SuggestResponder(
            self.live, self.admission, settings.suggest_cache_mb, metrics, insights=self.insights
        )
        # For calls with tokens of the configured issuer, if there is one.
        self.oauth_dispatcher: Dispatcher | None = None
        if settings.issuer is not None:
            from service.auth.oauth import OAuthVerifier

            oauth = OAuthVerifier(settings.issuer, metrics=metrics)
            self._opened.push_async_callback(oauth.close)
            admission = Admission(oauth, self.limiter, policy, metrics)
            self.oauth_dispatcher = dispatcher(admission, token_required=True)

    async def warm_up(self) -> None:
        """Open the limiter's connection before the first call, which would wait for it."""
        try:
            await self.limiter.hit(READINESS_KEY, READINESS_QUOTA)
        except Exception as error:  # noqa: BLE001 - calls report any failure of it
            _LOG.warning("the limiter could not be opened: %s", type(error).__name__)

    async def count_queries(self) -> None:
        """Count what people ask, where that is on, until the task is cancelled."""
        if self.insights is not None:
            await self.insights.run()

    async def open_index(self) -> None:
        """Wait until the index is open, or can't be opened."""
        with suppress(BackendUnavailable):
            await self.search.snapshot()

    async def close(self) -> None:
        """Close the parts."""
        await self._opened.aclose()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run the work in a task while the block runs, so that an engine that hangs does not delay the start."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait((task,))


def open_limiter(settings: Settings, metrics: Metrics = NO_METRICS) -> Limiter:
    """The limiter that the settings name; that over Redis falls back to a local one (Q4)."""
    local = MemoryLimiter()
    if settings.limiter == "memory":
        return local
    from service.limits.blocks import BlockLimiter
    from service.limits.fallback import FallbackLimiter
    from service.limits.redis import RedisLimiter

    shared = RedisLimiter(settings.redis_access, settings.redis_prefix)
    return FallbackLimiter(BlockLimiter(shared), local, metrics)


def open_search(settings: Settings, metrics: Metrics = NO_METRICS) -> SearchBackend:
    """The backend that the settings name; this sends no request."""
    if settings.engine == "embedded":
        from shop_directory.search.embedded.engine import EmbeddedBackend

        return EmbeddedBackend(settings.data_dir, settings.category_cap, metrics, workers=settings.workers)
    from shop_directory.search.opensearch.engine import OpenSearchBackend
    from shop_directory.search.opensearch.folder import FolderLocation

    return OpenSearchBackend(
        settings.opensearch_urls,
        settings.index_prefix,
        settings.category_cap,
        min(_ENGINE_TIMEOUT, settings.request_timeout),
        metrics,
        access=settings.cluster_access,
        location=FolderLocation(
            None if settings.typeahead_dir is None else settings.typeahead_dir / settings.index_prefix,
            settings.typeahead_mb * 1024**2,
        ),
    )
