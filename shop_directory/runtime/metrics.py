"""What the service counts of itself. Labels have fixed values: no query, shop, token or address (E5, V2)."""

import logging
from collections.abc import Callable
from typing import Final, cast

_LOG: Final = logging.getLogger(__name__)


class Metrics:
    """Counters and timings. No method raises or waits; those of this class discard reports."""

    def answered(self, route: str, outcome: str, *seconds: float) -> None:
        """Calls of one route were answered with one outcome, each in so many seconds from its head to its answer's end.

        The route is a tool's name, `suggest`, `mcp` (a message that calls no tool), a probe's name, or `none`; the
        outcome `ok`, the code of a problem, or `left` when the caller disconnected.
        """

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        """A request to the search engine ended: `stamp`, `search`, `every` or `present`.

        The outcome is `ok`, `gone` (the generation was removed), `unavailable`, or `refused` by an open circuit.
        """

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        """A call of the store `tokens`, `limiter` or `reports` ended with outcome `ok` or `unavailable`."""

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        """The cache `stamp`, `tokens`, `etag` or `suggest` was looked up `times` times."""

    def quota(self, bucket: str, decision: str, times: int = 1, network: str | None = None) -> None:
        """A quota was decided: `allowed`, `refused`, or `local` when counted without the shared limiter (Q4).

        `network` is the name of the caller's network if the quota is that of a network.
        """

    def circuit(self, part: str, state: str) -> None:
        """A circuit breaker became `closed`, `open` or `half_open`."""

    def in_flight(self, change: int) -> None:
        """The number of requests in flight changed."""

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        """A file of `size` bytes was fetched (`ok`), or could not be (`unavailable`, of size 0)."""

    def typeahead_folder(self, files: int, size: int) -> None:
        """The folder for fetched typeaheads now holds `files` files of `size` bytes in total."""

    def typeahead_open(self, segments: int, size: int) -> None:
        """Suggest requests are now answered from `segments` segments of `size` bytes in total."""

    def index_checked(self, size: int) -> None:
        """`size` bytes of the embedded index were read again while serving."""

    def index_damaged(self, scopes: int) -> None:
        """The number of generations and typeaheads that are not used, because a file is damaged, is now `scopes`."""


NO_METRICS: Final = Metrics()


def safe_metrics(metrics: Metrics) -> Metrics:
    """The same metrics, except that no method raises: the first failure is logged, and later ones are dropped."""
    return cast("Metrics", _SafeMetrics(metrics))


class _SafeMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._logged = False

    def __getattr__(self, name: str) -> Callable[..., None]:
        record = getattr(self._metrics, name)

        def record_safely(*values: object, **named: object) -> None:
            try:
                record(*values, **named)
            except Exception:  # noqa: BLE001 - what counts a call must not end it
                # Once: a full disk would otherwise fill the log as fast as requests come.
                if not self._logged:
                    self._logged = True
                    _LOG.exception("a metric could not be recorded; later failures are not logged")

        # Found without __getattr__ from now on.
        setattr(self, name, record_safely)
        return record_safely
