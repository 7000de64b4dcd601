"""What a scrape gets: the service's metrics, its current state, and their encoding as Prometheus reads it.

With several workers each writes its values to a file in the directory that PROMETHEUS_MULTIPROC_DIR names, and the
worker that is scraped adds them all up. The variable must be set before this module is imported, as prometheus_client
chooses then where values are stored.

A part that is unavailable has `up` 0 and no other sample: an old value is never repeated. A value that is not stated
has no sample.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount, Stamp
from service.operations import HealthSnapshot, ServiceState, Unavailable, parse_timestamp, remaining
from service.reports.protocol import Waiting
from shop_directory.runtime.metrics import Metrics
from shop_directory.search.protocol import Generations

M = TypeVar("M", bound=MetricWrapperBase)

MULTIPROC_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
# Half a decade a step, from a cached answer to a caller who waited beyond the deadline.
BUCKETS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_STATES: Final = ("closed", "half_open", "open")
_CIRCUITS: Final = ("limiter", "reports", "search", "stamp")
_LIVE_FILES: Final = "gauge_live*_*.db"
_MAX_CACHED: Final = 512
_OPENMETRICS: Final = "application/openmetrics-text"
MAX_ACCOUNTS: Final = 1_000

_ACCOUNT_LABELS: Final = ("provider", "account", "unit")
_PROCESS_GAUGES: Final = (
    ("process_resident_memory_bytes", "Resident memory of all workers.", sum),
    ("process_virtual_memory_bytes", "Virtual memory of all workers.", sum),
    ("process_open_fds", "Open file descriptors of all workers.", sum),
    ("process_max_fds", "File descriptors that one worker may open: the lowest limit of all workers.", min),
    ("process_start_time_seconds", "When the youngest worker started.", max),
)  # fmt: skip


class _Makers:
    """Make metrics in one registry; one with labels is called with their values. Durations are in seconds.

    The values of a `level` are added up over the workers. A `shared` gauge is of what the workers of a machine share,
    so the largest of their values counts.
    """

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.histogram = _by_labels(partial(Histogram, buckets=BUCKETS, registry=registry))
        self.counters = _by_labels(partial(Counter, registry=registry))
        self.counter = partial(Counter, registry=registry)
        self.level = partial(Gauge, registry=registry, multiprocess_mode="livesum")
        self.levels = _by_labels(self.level)
        self.shared = partial(Gauge, registry=registry, multiprocess_mode="livemax")


def _by_labels(make: Callable[..., M]) -> Callable[..., Callable[..., M]]:
    """Makes metrics with labels; a look-up is cached, as the library's own takes a lock each time."""
    return lambda name, help_text, *labels: lru_cache(maxsize=_MAX_CACHED)(make(name, help_text, labels).labels)


class PrometheusMetrics(Metrics):
    """Counters, gauges and histograms in a separate registry."""

    def __init__(self) -> None:
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
        self._requests = make.histogram(
            "shopdir_request_duration_seconds", "Time from a request's head to its answer's end.", "route", "outcome"
        )
        self._engine_calls = make.histogram(
            "shopdir_engine_call_duration_seconds",
            "Time that the search engine took to answer.",
            "operation",
            "outcome",
        )
        self._store_calls = make.histogram(
            "shopdir_store_call_duration_seconds", "Time that a store took to answer.", "store", "operation", "outcome"
        )
        self._cache_lookups = make.counters("shopdir_cache_lookups_total", "Looks into a cache.", "cache", "result")
        self._quota_decisions = make.counters(
            "shopdir_quota_decisions_total", "Decisions on a quota.", "bucket", "decision"
        )
        self._network_decisions = make.counters(
            "shopdir_network_quota_decisions_total",
            "Decisions on the quota of a named network.",
            "network",
            "bucket",
            "decision",
        )
        self._circuit_changes = make.counters(
            "shopdir_circuit_changes_total", "Changes of a circuit breaker.", "part", "state"
        )
        self._circuit_states = make.levels(
            "shopdir_circuit_state", "Workers whose circuit breaker is in that state.", "part", "state"
        )
        self._in_flight = make.level("shopdir_requests_in_flight", "Requests in flight.")
        for part in _CIRCUITS:
            self._set_circuit(part, "closed")

    def _make_index_metrics(self, make: _Makers) -> None:
        self._fetches = make.histogram(
            "shopdir_typeahead_fetch_duration_seconds", "Time to fetch one file of a typeahead.", "outcome"
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
        requests = self._requests(route, outcome)
        for each in seconds:
            requests.observe(each)

    def engine_call(self, operation: str, outcome: str, seconds: float) -> None:
        self._engine_calls(operation, outcome).observe(seconds)

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        self._store_calls(store, operation, outcome).observe(seconds)

    def cache(self, cache: str, *, hit: bool, times: int = 1) -> None:
        self._cache_lookups(cache, "hit" if hit else "miss").inc(times)

    def quota(self, bucket: str, decision: str, times: int = 1, network: str | None = None) -> None:
        self._quota_decisions(bucket, decision).inc(times)
        if network is not None:
            self._network_decisions(network, bucket, decision).inc(times)

    def circuit(self, part: str, state: str) -> None:
        self._circuit_changes(part, state).inc()
        self._set_circuit(part, state)

    def in_flight(self, change: int) -> None:
        self._in_flight.inc(change)

    def typeahead_fetched(self, outcome: str, size: int, seconds: float) -> None:
        self._fetches(outcome).observe(seconds)
        self._fetched.inc(size)

    def typeahead_folder(self, files: int, size: int) -> None:
        self._folder_files.set(files)
        self._folder_bytes.set(size)

    def typeahead_open(self, segments: int, size: int) -> None:
        self._open_segments.set(segments)
        self._open_bytes.set(size)

    def index_checked(self, size: int) -> None:
        self._checked.inc(size)

    def index_damaged(self, scopes: int) -> None:
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


class _FixedCollector(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def encode_families(families: Sequence[Metric], accept: str | None) -> tuple[bytes, bytes]:
    """Encode metric families, no two of the same name. Returns the text and its content type.

    Of the `accept` header only whether it names OpenMetrics matters: prometheus_client would repeat the version that it
    asks for in the content type, and raise for one that is not a number.
    """
    encode, media_type = choose_encoder(_OPENMETRICS if _OPENMETRICS in (accept or "").lower() else "")
    return encode(_FixedCollector(families)), media_type.encode()


def scrape_gauge_families(service: ServiceState, health: HealthSnapshot) -> list[Metric]:
    """The metric families of this process and of the state of its parts."""
    build = {"version": service.version, "commit": service.commit or "", "built_at": service.built_at or ""}
    return [
        InfoMetricFamily("shopdir_build", "The build that runs.", value=build),
        *_generations(health.generations),
        *_queue(health.queue),
    ]


def _generations(generations: Generations | Unavailable) -> list[Metric]:
    if isinstance(generations, Unavailable):
        return [_gauge("engine_up", "Whether the search engine answered which generation is live.", 0)]
    follower = None if generations.operations is None else generations.operations.follower
    return [
        _gauge("engine_up", "Whether the search engine answered which generation is live.", 1),
        *_live(generations.live),
        *([] if follower is None else _follower(follower)),
    ]


def _live(stamp: Stamp) -> list[Metric]:
    # The name is a label of one series: the series of an earlier generation ends when the name changes.
    labels = {"generation": stamp.generation, "schema_version": str(stamp.schema_version)}
    documents = GaugeMetricFamily("shopdir_documents", "Documents of the live generation by kind.", labels=("kind",))
    for kind, count in sorted(stamp.counts.items()):
        documents.add_metric((kind,), count)
    return [
        InfoMetricFamily("shopdir_generation", "The live generation.", value=labels),
        _gauge("generation_readable", "Whether this service reads the live generation.", int(stamp.readable)),
        _gauge("generation_sequence", "The live generation's sequence.", stamp.sequence),
        _time("generation_built", "When the live generation's data was last changed.", stamp.built_at),
        documents,
    ]


def _follower(status: FollowerStatus) -> list[Metric]:
    return [
        _time("follower_reported", "When the follower last reported its status.", status.told_at),
        _time("follower_caught_up", "When the follower last had no change left to apply.", status.caught_up_at),
        _gauge("follower_waiting_changes", "Changes known to wait for the follower.", status.waiting),
    ]


def _queue(queue: Waiting | Unavailable) -> list[Metric]:
    if isinstance(queue, Unavailable):
        return [_gauge("recheck_queue_up", "Whether the re-check queue answers.", 0)]
    return [
        _gauge("recheck_queue_up", "Whether the re-check queue answers.", 1),
        _gauge("recheck_queue_depth", "Re-checks that are not acknowledged.", queue.depth),
        _gauge("recheck_queue_lag", "Re-checks that no worker has claimed yet.", queue.lag),
        _gauge("recheck_queue_pending", "Re-checks that a worker holds.", queue.pending),
        _gauge("recheck_queue_dead_letters", "Re-checks given up after too many deliveries.", queue.dead),
    ]


def _gauge(name: str, help_text: str, value: float | None) -> Metric:
    return GaugeMetricFamily(f"shopdir_{name}", help_text, value=value)


def _time(name: str, help_text: str, text: str | None) -> Metric:
    return _gauge(f"{name}_timestamp_seconds", help_text, _unix_seconds(text))


def resource_families(operations: Operations | None) -> list[Metric]:
    """The metric families of the accounts; `operations` is None if the live generation has no such document."""
    known = operations is not None
    accounts = () if operations is None else operations.accounts
    shown = accounts[:MAX_ACCOUNTS]
    return [
        _gauge("resource_accounts_known", "Whether the live generation has information on accounts.", known),
        _gauge("resource_accounts", "Accounts that the catalogue states.", len(accounts) if known else None),
        _gauge("resource_accounts_left_out", f"Accounts beyond {MAX_ACCOUNTS:,}.", len(accounts) - len(shown)),
        _account_gauge("used", "Units used.", shown, lambda account: account.used),
        _account_gauge("limit", "Units available in total.", shown, lambda account: account.limit),
        _account_gauge("remaining", "limit - used; below 0 when more is used than there is.", shown, remaining),
        _account_gauge(
            "reset_timestamp_seconds", "When the count restarts.", shown, lambda one: _unix_seconds(one.resets_at)
        ),
        _account_gauge(
            "observed_timestamp_seconds", "When this was observed.", shown, lambda one: _unix_seconds(one.observed_at)
        ),
        _statuses(shown),
    ]


def _account_gauge(
    name: str, help_text: str, accounts: Iterable[ResourceAccount], value: Callable[[ResourceAccount], float | None]
) -> Metric:
    family = GaugeMetricFamily(f"shopdir_resource_{name}", help_text, labels=_ACCOUNT_LABELS)
    for account in accounts:
        if (number := value(account)) is not None:
            family.add_metric(_labels(account), number)
    return family


def _statuses(accounts: Iterable[ResourceAccount]) -> Metric:
    family = InfoMetricFamily(
        "shopdir_resource_status", "The account's status, as the catalogue states it.", labels=_ACCOUNT_LABELS
    )
    for account in accounts:
        if account.status is not None:
            family.add_metric(_labels(account), {"status": account.status})
    return family


def _labels(account: ResourceAccount) -> tuple[str, str, str]:
    return account.provider, account.account, account.unit or ""


def _unix_seconds(text: str | None) -> float | None:
    time = parse_timestamp(text)
    return None if time is None else time.timestamp()


def process_families(pids: Iterable[int]) -> list[Metric]:
    """The metric families of the workers with these process ids; one that has ended is left out."""
    values: dict[str, list[float]] = {}
    running = 0
    for pid in pids:
        samples = [sample for family in _collect(pid) for sample in family.samples]
        running += bool(samples)
        for sample in samples:
            values.setdefault(sample.name, []).append(sample.value)
    cpu = values.get("process_cpu_seconds_total", [0.0])
    return [
        GaugeMetricFamily("shopdir_workers", "Processes that serve.", value=running),
        CounterMetricFamily("process_cpu_seconds", "Processor time used by the running workers.", sum(cpu)),
        *(
            GaugeMetricFamily(name, help_text, value=combine(values[name]) if name in values else None)
            for name, help_text, combine in _PROCESS_GAUGES
        ),
    ]


def _collect(pid: int) -> Iterable[Metric]:
    return ProcessCollector(pid=lambda: pid, registry=None).collect()
