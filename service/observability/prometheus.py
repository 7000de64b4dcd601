"""The service's metrics as Prometheus metrics, for one worker and for several.

Each application has a registry of its own. With several workers each writes its values to a file in the directory that
PROMETHEUS_MULTIPROC_DIR names, and the worker that is scraped adds them all up. The variable must be set before this
module is imported, as prometheus_client chooses then where values are stored.
"""

import os
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from service.runtime.telemetry import Metrics

MULTIPROC_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
# Half a decade a step, from a cached answer to a caller who waited beyond the deadline.
BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_STATES: Final = ("closed", "half_open", "open")
_CIRCUITS: Final = ("limiter", "reports", "search", "stamp")
_LIVE_FILES: Final = "gauge_live*_*.db"
_MAX_CACHED: Final = 512

M = TypeVar("M", bound=MetricWrapperBase)


def _by_labels(make: Callable[..., M], name: str, help_text: str, *labels: str) -> Callable[..., M]:
    """A metric, looked up by the values of its labels; the library's own look-up takes a lock each time."""
    return lru_cache(maxsize=_MAX_CACHED)(make(name, help_text, labels).labels)


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

    def __init__(self) -> None:
        """Make the metrics."""
        # They would double the number of series, and nothing here reads them.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        directory = os.environ.get(MULTIPROC_DIR)
        self._directory = Path(directory) if directory else None
        self._registry = CollectorRegistry()
        if directory:
            MultiProcessCollector(self._registry, directory)  # type: ignore[no-untyped-call]
        # With several workers only the collector of their files is registered.
        make = _Makers(None if directory else self._registry)
        self._make_call_metrics(make)
        self._make_index_metrics(make)

    def _make_call_metrics(self, make: _Makers) -> None:
        self._requests = _by_labels(
            make.histogram,
            "shopdir_request_duration_seconds",
            "Time from a request's head to its answer's end.",
            "route",
            "outcome",
        )
        self._engine_calls = _by_labels(
            make.histogram,
            "shopdir_engine_call_duration_seconds",
            "Time that the search engine took to answer.",
            "operation",
            "outcome",
        )
        self._store_calls = _by_labels(
            make.histogram,
            "shopdir_store_call_duration_seconds",
            "Time that a store took to answer.",
            "store",
            "operation",
            "outcome",
        )
        self._cache_lookups = _by_labels(
            make.counter, "shopdir_cache_lookups_total", "Looks into a cache.", "cache", "result"
        )
        self._quota_decisions = _by_labels(
            make.counter, "shopdir_quota_decisions_total", "Decisions on a quota.", "bucket", "decision"
        )
        self._circuit_changes = _by_labels(
            make.counter, "shopdir_circuit_changes_total", "Changes of a circuit breaker.", "part", "state"
        )
        self._circuit_states = _by_labels(
            make.level, "shopdir_circuit_state", "Workers whose circuit breaker is in that state.", "part", "state"
        )
        self._in_flight = make.level("shopdir_requests_in_flight", "Requests in flight.")
        for part in _CIRCUITS:
            self._set_circuit(part, "closed")

    def _make_index_metrics(self, make: _Makers) -> None:
        self._fetches = _by_labels(
            make.histogram,
            "shopdir_typeahead_fetch_duration_seconds",
            "Time to fetch one file of a typeahead.",
            "outcome",
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
        requests = self._requests(route, outcome)
        for each in seconds:
            requests.observe(each)

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        self._engine_calls(operation, outcome).observe(seconds)

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        self._store_calls(store, operation, outcome).observe(seconds)

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        """As `Metrics`."""
        self._cache_lookups(cache, "hit" if hit else "miss").inc(times)

    def quota(self, bucket: str, decision: str, times: int = 1) -> None:
        """As `Metrics`."""
        self._quota_decisions(bucket, decision).inc(times)

    def circuit(self, part: str, state: str) -> None:
        """As `Metrics`."""
        self._circuit_changes(part, state).inc()
        self._set_circuit(part, state)

    def in_flight(self, change: int) -> None:
        """As `Metrics`."""
        self._in_flight.inc(change)

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        """As `Metrics`."""
        self._fetches(outcome).observe(seconds)
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
            self._circuit_states(part, each).set(each == state)
