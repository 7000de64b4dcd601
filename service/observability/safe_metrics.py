"""Metrics that can't break an answer."""

import logging
from collections.abc import Callable
from typing import Final, cast

from service.runtime.metrics import Metrics

_LOG: Final = logging.getLogger(__name__)


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
