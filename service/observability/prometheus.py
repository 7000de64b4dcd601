"""The service's metrics as Prometheus metrics, for one worker and for several.

Each application has a registry of its own. With several workers each writes its values to a file in the directory that
PROMETHEUS_MULTIPROC_DIR names, and the worker that is scraped adds them all up. The variable must be set before this
module is imported, as prometheus_client chooses then where values are stored.
"""

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from service.errors import ServiceError
from service.runtime.request_context import LEFT
from service.runtime.telemetry import NO_ROUTE, OK, REFUSED, Metrics

OTHER: Final = "other"
MULTIPROC_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
# Half a decade a step, from a cached answer to a caller who waited beyond the deadline.
BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_STATES: Final = ("closed", "half_open", "open")
_OUTCOMES: Final = ("ok", "gone", "unavailable", "refused")
_CIRCUITS: Final = ("limiter", "reports", "search", "stamp")
_LIVE_FILES: Final = "gauge_live*_*.db"
# How many further values a label of operations or parts may have, so that a new one needs no line here.
_FEW: Final = 16
_MAX_CACHED: Final = 512
_LABEL_FORM: Final = re.compile("[a-z][a-z0-9_]{0,30}")

M = TypeVar("M", bound=MetricWrapperBase)


class _LabelValues:
    """The values that one label may have, so that the number of series is bounded, whatever callers send."""

    def __init__(self, known: Iterable[str], more: int = 0) -> None:
        """Allow the known values, and the first `more` others that look like identifiers."""
        self._known = set(known)
        self._more = more

    def __call__(self, value: str) -> str:
        """The value, or `other` if it is not allowed."""
        if value in self._known:
            return value
        if self._more > 0 and _LABEL_FORM.fullmatch(value):
            self._more -= 1
            self._known.add(value)
            return value
        return OTHER


class _Bounded(Generic[M]):
    """A metric whose labels take a bounded number of values."""

    def __init__(self, make: Callable[..., M], name: str, help_text: str, **allowed: _LabelValues) -> None:
        self._metric = make(name, help_text, tuple(allowed))
        self._allowed = tuple(allowed.values())
        # The library's own look-up takes a lock, several times a request.
        self.labels = lru_cache(maxsize=_MAX_CACHED)(self._child)

    def _child(self, *labels: str) -> M:
        return self._metric.labels(*(values(label) for values, label in zip(self._allowed, labels, strict=True)))


class _Makers:
    """Make metrics in one registry.

    Attributes:
        histogram, counter: of durations in seconds, and of events.
        level: a gauge whose values are added up over the workers.
        shared: a gauge of what the workers of a machine share, so that the largest of their values counts.
    """

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.histogram = partial(Histogram, buckets=BUCKETS, registry=registry)
        self.counter = partial(Counter, registry=registry)
        self.level = partial(Gauge, registry=registry, multiprocess_mode="livesum")
        self.shared = partial(Gauge, registry=registry, multiprocess_mode="livemax")


class PrometheusMetrics(Metrics):
    """Counters, gauges and histograms in a registry of their own."""

    def __init__(self, routes: Iterable[str]) -> None:
        """Make the metrics; a route that is not among these labels is counted as `other`."""
        # They would double the number of series, and nothing here reads them.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        directory = os.environ.get(MULTIPROC_DIR)
        self._directory = Path(directory) if directory else None
        self._registry = CollectorRegistry()
        if directory:
            MultiProcessCollector(self._registry, directory)  # type: ignore[no-untyped-call]
        # With several workers only the collector of their files is registered.
        make = _Makers(None if directory else self._registry)
        self._make_call_metrics(make, routes)
        self._make_index_metrics(make)

    def _make_call_metrics(self, make: _Makers, routes: Iterable[str]) -> None:
        ended = _LabelValues(_OUTCOMES)
        self._requests = _Bounded(
            make.histogram,
            "shopdir_request_duration_seconds",
            "Time from a request's head to its answer's end.",
            route=_LabelValues([*routes, NO_ROUTE]),
            outcome=_LabelValues([OK, LEFT, REFUSED, *(error.code for error in ServiceError.__subclasses__())]),
        )
        self._engine_calls = _Bounded(
            make.histogram,
            "shopdir_engine_call_duration_seconds",
            "Time that the search engine took to answer.",
            operation=_LabelValues(["stamp", "search", "every", "present"], _FEW),
            outcome=ended,
        )
        self._store_calls = _Bounded(
            make.histogram,
            "shopdir_store_call_duration_seconds",
            "Time that a store took to answer.",
            store=_LabelValues(["tokens", "limiter", "reports"]),
            operation=_LabelValues([], _FEW),
            outcome=ended,
        )
        self._cache_lookups = _Bounded(
            make.counter,
            "shopdir_cache_lookups_total",
            "Looks into a cache.",
            cache=_LabelValues(["stamp", "tokens", "etag", "suggest"]),
            result=_LabelValues(["hit", "miss"]),
        )
        self._quota_decisions = _Bounded(
            make.counter,
            "shopdir_quota_decisions_total",
            "Decisions on a quota.",
            bucket=_LabelValues(["reads", "suggest", "reports"]),
            decision=_LabelValues(["allowed", "refused", "local"]),
        )
        circuit = {"part": _LabelValues(_CIRCUITS, _FEW), "state": _LabelValues(_STATES)}
        self._circuit_changes = _Bounded(
            make.counter, "shopdir_circuit_changes_total", "Changes of a circuit breaker.", **circuit
        )
        self._circuit_states = _Bounded(
            make.level, "shopdir_circuit_state", "Workers whose circuit breaker is in that state.", **circuit
        )
        self._in_flight = make.level("shopdir_requests_in_flight", "Requests in flight.")
        for part in _CIRCUITS:
            self._set_circuit(part, "closed")

    def _make_index_metrics(self, make: _Makers) -> None:
        self._fetches = _Bounded(
            make.histogram,
            "shopdir_typeahead_fetch_duration_seconds",
            "Time to fetch one file of a typeahead.",
            outcome=_LabelValues(_OUTCOMES),
        )
        self._fetched = make.counter(
            "shopdir_typeahead_fetched_bytes_total", "Bytes of the fetched files of typeaheads."
        )
        self._folder_files = make.shared(
            "shopdir_typeahead_folder_files", "Files of typeaheads in the folder of this machine."
        )
        self._folder_bytes = make.shared("shopdir_typeahead_folder_bytes", "Bytes of the files in that folder.")
        self._open_segments = make.shared(
            "shopdir_typeahead_open_segments", "Segments from which suggest requests are answered."
        )
        self._open_bytes = make.shared("shopdir_typeahead_open_bytes", "Bytes of these segments, mapped into memory.")
        self._checked = make.counter(
            "shopdir_index_checked_bytes_total", "Bytes of the embedded index that were read again while serving."
        )
        self._damaged = make.shared(
            "shopdir_index_damaged", "Generations that are not answered from, as a file is damaged."
        )

    def answered(self, route: str, outcome: str, *seconds: float) -> None:
        """As `Metrics`."""
        requests = self._requests.labels(route, outcome)
        for each in seconds:
            requests.observe(each)

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        self._engine_calls.labels(operation, outcome).observe(seconds)

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        self._store_calls.labels(store, operation, outcome).observe(seconds)

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        """As `Metrics`."""
        self._cache_lookups.labels(cache, "hit" if hit else "miss").inc(times)

    def quota(self, bucket: str, decision: str, times: int = 1) -> None:
        """As `Metrics`."""
        self._quota_decisions.labels(bucket, decision).inc(times)

    def circuit(self, part: str, state: str) -> None:
        """As `Metrics`."""
        self._circuit_changes.labels(part, state).inc()
        self._set_circuit(part, state)

    def in_flight(self, change: int) -> None:
        """As `Metrics`."""
        self._in_flight.inc(change)

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        """As `Metrics`."""
        self._fetches.labels(outcome).observe(seconds)
        self._fetched.inc(size)

    def typeahead_folder(self, files: int, size: int) -> None:
        """As `Metrics`."""
        self._folder_files.set(files)
        self._folder_bytes.set(size)

    def typeahead_open(self, segments: int, size: int) -> None:
        """As `Metrics`."""
        self._open_segments.set(segments)
        self._open_bytes.set(size)

    def index_checked(self, size: int) -> None:
        """As `Metrics`."""
        self._checked.inc(size)

    def index_damaged(self, scopes: int) -> None:
        """As `Metrics`."""
        self._damaged.set(scopes)

    def families(self) -> list[Metric]:
        """All metrics, over all workers; the gauges of workers that have ended are left out."""
        if self._directory is not None:
            for pid in self.workers():
                if not Path(f"/proc/{pid}").is_dir():
                    mark_process_dead(pid, str(self._directory))  # type: ignore[no-untyped-call]
        return list(self._registry.collect())

    def workers(self) -> tuple[int, ...]:
        """The process ids of the workers that count together; this process alone if it is the only one."""
        if self._directory is None:
            return (os.getpid(),)
        return tuple(sorted({int(file.stem.rpartition("_")[2]) for file in self._directory.glob(_LIVE_FILES)}))

    def _set_circuit(self, part: str, state: str) -> None:
        for each in _STATES:
            self._circuit_states.labels(part, each).set(each == state)
