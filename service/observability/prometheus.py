"""The measures as Prometheus metrics, right for one worker and for several.

Each application has a registry of its own. With several workers each writes its numbers to a file in the directory
that PROMETHEUS_MULTIPROC_DIR names, and whichever worker is asked adds them all up; the variable must be set before
this module is imported, for the library decides then how it keeps numbers.
"""

import math
import os
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from service.errors import ServiceError
from service.observability.label_values import Words
from service.runtime.call_log import NO_ROUTE, OK, REFUSED
from service.runtime.metrics import Metrics
from service.runtime.request_context import LEFT

MULTIPROC_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
# Half a decade a step, from a cached answer to a caller who waited for the deadline and more.
BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_STATES: Final = ("closed", "half_open", "open")
_CIRCUITS: Final = ("limiter", "reports", "search", "stamp")
_LIVE_FILES: Final = "gauge_live*_*.db"
# Words of stores and parts that are written after this module: a few are taken as they come.
_FEW: Final = 16
_HELP: Final = {
    "shopdir_request_duration_seconds": "Time from a request's head to its answer's end.",
    "shopdir_engine_call_duration_seconds": "Time that the search engine took to answer.",
    "shopdir_store_call_duration_seconds": "Time that a store took to answer.",
    "shopdir_cache_lookups_total": "Looks into a cache.",
    "shopdir_quota_decisions_total": "Decisions on a quota.",
    "shopdir_circuit_changes_total": "Changes of a circuit breaker.",
    "shopdir_circuit_state": "Workers whose circuit breaker is in that state.",
    "shopdir_requests_under_way": "Requests being worked on.",
    "shopdir_typeahead_fetch_duration_seconds": "Time to fetch one file of a typeahead.",
    "shopdir_typeahead_fetched_bytes_total": "Bytes of the fetched files of typeaheads.",
    "shopdir_typeahead_folder_files": "Files of typeaheads in the folder of this machine.",
    "shopdir_typeahead_folder_bytes": "Bytes of the files in that folder.",
    "shopdir_typeahead_open_segments": "Segments from which suggest requests are answered.",
    "shopdir_typeahead_open_bytes": "Bytes of these segments, mapped into memory.",
    "shopdir_index_checked_bytes_total": "Bytes of the embedded index that were read again while serving.",
    "shopdir_index_damaged": "Generations that are not answered from, as a file is damaged.",
}

_Child_co = TypeVar("_Child_co", covariant=True)


class _Observer(Protocol):
    """What takes times."""

    def observe(self, amount: float) -> None:
        """Take in a time, in seconds."""


class _Labelled(Protocol[_Child_co]):
    """A metric with children by labels."""

    def labels(self, *labels: str) -> _Child_co:
        """The child of these labels."""


class _Series(Generic[_Child_co]):
    """A metric whose labelled children are found by one look-up."""

    def __init__(self, metric: _Labelled[_Child_co], *words: Words) -> None:
        self._metric = metric
        self._words = words
        self._children: dict[tuple[str, ...], _Child_co] = {}

    def of(self, *labels: str) -> _Child_co:
        child = self._children.get(labels)
        if child is None:
            known = tuple(words(label) for words, label in zip(self._words, labels, strict=True))
            child = self._metric.labels(*known)
            if known == labels:
                self._children[labels] = child
        return child


class _Times(Collector):
    """A histogram of a process that is alone, told only by its event loop.

    The library's own takes a lock and ten steps for each time, of which a key press has two.
    """

    def __init__(self, name: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._name = name
        self._labels = labels
        self._children: dict[tuple[str, ...], _Timed] = {}
        registry.register(self)

    def labels(self, *labels: str) -> "_Timed":
        """The times of these labels."""
        return self._children.setdefault(labels, _Timed())

    def collect(self) -> Iterable[Metric]:
        """As the library asks for it."""
        family = HistogramMetricFamily(self._name, _HELP[self._name], labels=self._labels)
        for labels, timed in tuple(self._children.items()):
            family.add_metric(labels, timed.buckets(), timed.sum)
        yield family


class _Timed:
    """Times of one sort: how many are at most as long as each of BUCKETS and no shorter one, and how long all are."""

    __slots__ = ("_counts", "sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def observe(self, amount: float) -> None:
        """Take in a time, in seconds."""
        self._counts[bisect_left(BUCKETS, amount)] += 1
        self.sum += amount

    def buckets(self) -> list[tuple[str, float]]:
        """The bounds and how many times are at most as long, as the library writes them."""
        return list(zip(map(floatToGoString, (*BUCKETS, math.inf)), accumulate(self._counts), strict=True))


class PrometheusMetrics(Metrics):
    """Counts and times in a registry of its own."""

    def __init__(self, routes: Iterable[str]) -> None:
        """Make the metrics.

        Args:
            routes: the words for tools and paths that there are; any other is `other`.
        """
        # They would double the series, and are not read by anybody here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        directory = os.environ.get(MULTIPROC_DIR)
        self._directory = Path(directory) if directory else None
        self._registry = CollectorRegistry()
        if directory:
            MultiProcessCollector(self._registry, directory)  # type: ignore[no-untyped-call]
        self._own = None if directory else self._registry
        outcomes = Words([OK, LEFT, REFUSED, *(error.code for error in ServiceError.__subclasses__())])
        short = Words(["ok", "gone", "unavailable", "refused"])
        self._answered = _Series(self._times("request", ("route", "outcome")), Words([*routes, NO_ROUTE]), outcomes)
        engine = self._times("engine_call", ("operation", "outcome"))
        self._engine = _Series(engine, Words(["stamp", "search", "every", "present"], _FEW), short)
        stores = self._times("store_call", ("store", "operation", "outcome"))
        self._stores = _Series(stores, Words(["tokens", "limiter", "reports"]), Words([], _FEW), short)
        caches = self._counts("cache_lookups", ("cache", "result"))
        kept = Words(["stamp", "categories", "tokens", "etag", "suggest"])
        self._caches = _Series(caches, kept, Words(["hit", "miss"]))
        decisions = Words(["allowed", "refused", "local"])
        quotas = self._counts("quota_decisions", ("bucket", "decision"))
        self._quotas = _Series(quotas, Words(["reads", "suggest", "reports"]), decisions)
        parts, states = Words(_CIRCUITS, _FEW), Words(_STATES)
        self._changes = _Series(self._counts("circuit_changes", ("part", "state")), parts, states)
        self._circuits = _Series(self._level("circuit_state", ("part", "state")), parts, states)
        self._under_way = self._level("requests_under_way", ())
        self._fetches = _Series(self._times("typeahead_fetch", ("outcome",)), short)
        self._fetched = self._counts("typeahead_fetched_bytes", ())
        # Workers of one machine share the folder, and map the same files.
        self._folder_files, self._folder_bytes = self._shared("folder_files"), self._shared("folder_bytes")
        self._open_segments, self._open_bytes = self._shared("open_segments"), self._shared("open_bytes")
        self._checked = self._counts("index_checked_bytes", ())
        damaged = "shopdir_index_damaged"
        self._damaged = Gauge(damaged, _HELP[damaged], (), multiprocess_mode="livemax", registry=self._own)
        self._unsettled: dict[Counter, int] = {}
        for part in _CIRCUITS:
            self._stands(part, "closed")

    def answered(self, route: str, outcome: str, *seconds: float) -> None:
        """As `Metrics`."""
        observe = self._answered.of(route, outcome).observe
        for each in seconds:
            observe(each)

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        self._engine.of(operation, outcome).observe(seconds)

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        """As `Metrics`."""
        self._stores.of(store, operation, outcome).observe(seconds)

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        """As `Metrics`."""
        self._count(self._caches.of(cache, "hit" if hit else "miss"), times)

    def quota(self, bucket: str, decision: str, times: int = 1) -> None:
        """As `Metrics`."""
        self._count(self._quotas.of(bucket, decision), times)

    def circuit(self, part: str, state: str) -> None:
        """As `Metrics`."""
        self._changes.of(part, state).inc()
        self._stands(part, state)

    def under_way(self, change: int) -> None:
        """As `Metrics`."""
        self._under_way.inc(change)

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        """As `Metrics`."""
        self._fetches.of(outcome).observe(seconds)
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
        """What has been counted, over all workers; those that are gone no longer work on anything."""
        self._settle()
        if self._directory is not None:
            for pid in self.workers():
                if not Path(f"/proc/{pid}").is_dir():
                    worker_ended(pid, self._directory)
        return list(self._registry.collect())

    def workers(self) -> tuple[int, ...]:
        """The processes that count together; this one alone where it keeps its numbers to itself."""
        if self._directory is None:
            return (os.getpid(),)
        return tuple(sorted({int(file.stem.rpartition("_")[2]) for file in self._directory.glob(_LIVE_FILES)}))

    def _count(self, counter: Counter, times: int) -> None:
        # The library's own way takes a lock and several calls, three times a key press: for a process that is alone,
        # what it has counted need be there when it is read.
        if self._directory is None:
            self._unsettled[counter] = self._unsettled.get(counter, 0) + times
        else:
            counter.inc(times)

    def _settle(self) -> None:
        unsettled, self._unsettled = self._unsettled, {}
        for counter, count in unsettled.items():
            counter.inc(count)

    def _stands(self, part: str, state: str) -> None:
        for each in _STATES:
            self._circuits.of(part, each).set(each == state)

    def _times(self, name: str, labels: tuple[str, ...]) -> _Labelled[_Observer]:
        name = f"shopdir_{name}_duration_seconds"
        if self._own is not None:
            return _Times(name, labels, self._own)
        return Histogram(name, _HELP[name], labels, buckets=BUCKETS, registry=self._own)

    def _counts(self, name: str, labels: tuple[str, ...]) -> Counter:
        name = f"shopdir_{name}_total"
        return Counter(name, _HELP[name], labels, registry=self._own)

    def _shared(self, name: str) -> Gauge:
        name = f"shopdir_typeahead_{name}"
        return Gauge(name, _HELP[name], (), multiprocess_mode="livemax", registry=self._own)

    def _level(self, name: str, labels: tuple[str, ...]) -> Gauge:
        name = f"shopdir_{name}"
        return Gauge(name, _HELP[name], labels, multiprocess_mode="livesum", registry=self._own)


def worker_ended(pid: int, directory: Path) -> None:
    """Forget what a worker was doing when it ended; what it has counted stays counted.

    Args:
        pid: of the process.
        directory: where the workers keep their numbers.
    """
    mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call]
