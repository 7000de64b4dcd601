"""Metrics that can't break an answer: a fault of theirs is logged, and the call goes on uncounted."""

import logging
from typing import Final

from service.runtime.metrics import Metrics

_LOG: Final = logging.getLogger(__name__)


class SafeMetrics(Metrics):
    """Metrics around measures."""

    def __init__(self, metrics: Metrics) -> None:
        """Guard some measures.

        Args:
            metrics: whatever they raise is caught here.
        """
        self._metrics = metrics
        self._told = False

    def answered(self, route: str, outcome: str, *seconds: float) -> None:
        """As `Metrics`."""
        try:
            self._metrics.answered(route, outcome, *seconds)
        except Exception:  # noqa: BLE001 - what counts a call must not end it
            self._fault()

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        try:
            self._metrics.engine_call(operation, outcome, seconds)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        try:
            self._metrics.store_call(store, operation, outcome, seconds)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        """As `Metrics`."""
        try:
            self._metrics.cache(cache, hit=hit, times=times)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def quota(self, bucket: str, decision: str, times: int = 1) -> None:
        """As `Metrics`."""
        try:
            self._metrics.quota(bucket, decision, times)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def circuit(self, part: str, state: str) -> None:
        """As `Metrics`."""
        try:
            self._metrics.circuit(part, state)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def under_way(self, change: int) -> None:
        """As `Metrics`."""
        try:
            self._metrics.under_way(change)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        """As `Metrics`."""
        try:
            self._metrics.typeahead_fetched(outcome, size, seconds)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def typeahead_folder(self, files: int, size: int) -> None:
        """As `Metrics`."""
        try:
            self._metrics.typeahead_folder(files, size)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def typeahead_open(self, segments: int, size: int) -> None:
        """As `Metrics`."""
        try:
            self._metrics.typeahead_open(segments, size)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def index_checked(self, size: int) -> None:
        """As `Metrics`."""
        try:
            self._metrics.index_checked(size)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def index_damaged(self, scopes: int) -> None:
        """As `Metrics`."""
        try:
            self._metrics.index_damaged(scopes)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def _fault(self) -> None:
        if not self._told:
            # Once: a full disk would else fill the log as fast as requests come.
            self._told = True
            _LOG.exception("something could not be counted; no more is said of it")
