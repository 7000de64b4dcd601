"""What a scrape gets: metric families of the service's current state, and their encoding.

The families are the build, the generations, the follower, the re-check queue, the worker processes, and the resource
accounts of the catalogue. A part that is unavailable has `up` 0 and no other sample: an old value is never repeated. A
value that is not stated has no sample. prometheus_client encodes the families, so that label values are escaped
correctly.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount, Stamp
from service.operations.health import HealthSnapshot, Unavailable
from service.operations.state import ServiceState, parse_timestamp, remaining
from service.reports.protocol import Waiting
from service.search.protocol import Generations

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


class _FixedCollector(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def encode_families(families: Sequence[Metric], accept: str | None) -> tuple[bytes, bytes]:
    """Encode metric families, no two of the same name. Returns the text and its content type.

    Of the `accept` header only whether it names OpenMetrics matters: prometheus_client would repeat the version that it
    asks for in the content type, and raise for one that is no number.
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
    accounts = () if operations is None else operations.accounts
    shown = accounts[:MAX_ACCOUNTS]
    return [
        _gauge(
            "resource_accounts_known",
            "Whether the live generation has information on accounts.",
            operations is not None,
        ),
        _gauge(
            "resource_accounts", "Accounts that the catalogue states.", None if operations is None else len(accounts)
        ),
        _gauge("resource_accounts_left_out", f"Accounts beyond {MAX_ACCOUNTS:,}.", len(accounts) - len(shown)),
        _account_gauge("used", "Units used.", shown, lambda account: account.used),
        _account_gauge("limit", "Units available in total.", shown, lambda account: account.limit),
        _account_gauge("remaining", "limit - used; below 0 when more is used than there is.", shown, remaining),
        _account_gauge(
            "reset_timestamp_seconds",
            "When the count restarts.",
            shown,
            lambda account: _unix_seconds(account.resets_at),
        ),
        _account_gauge(
            "observed_timestamp_seconds",
            "When this was observed.",
            shown,
            lambda account: _unix_seconds(account.observed_at),
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
        *(_process_gauge(name, help_text, values.get(name), combine) for name, help_text, combine in _PROCESS_GAUGES),
    ]


def _collect(pid: int) -> Iterable[Metric]:
    return ProcessCollector(pid=lambda: pid, registry=None).collect()


def _process_gauge(
    name: str, help_text: str, values: list[float] | None, combine: Callable[[list[float]], float]
) -> Metric:
    return GaugeMetricFamily(name, help_text, value=combine(values) if values else None)
