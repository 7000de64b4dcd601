"""Metric families that are read at each scrape: the build, the generations, the follower and the re-check queue.

A part that is unavailable has `up` 0 and no other sample: an old value is never repeated.
"""

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from index_mappings.generations import Stamp
from index_mappings.operations import FollowerStatus
from service.operations.health import HealthSnapshot, Unavailable
from service.operations.state import ServiceState
from service.operations.state_document import parse_timestamp
from service.reports.protocol import Waiting
from service.search.protocol import Generations


def scrape_gauge_families(service: ServiceState, health: HealthSnapshot) -> list[Metric]:
    """The metric families of the current state of this process and of its parts."""
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
    time = parse_timestamp(text)
    return _gauge(f"{name}_timestamp_seconds", help_text, None if time is None else time.timestamp())
