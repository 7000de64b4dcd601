"""What is read anew at each scrape, as metric families: the build, the generations, the follower and the queue.

A part that is away has its `up` at 0 and no other sample: an old number is never repeated.
"""

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from index_mappings.generations import Stamp
from index_mappings.operations import FollowerStatus
from service.operations.health import Away, HealthSnapshot
from service.operations.state import ServiceState
from service.operations.state_document import moment
from service.reports.protocol import Waiting
from service.search.protocol import Generations


def standing_families(service: ServiceState, situation: HealthSnapshot) -> list[Metric]:
    """The families.

    Args:
        service: this process.
        situation: what the parts said just now.
    """
    build = {"version": service.version, "commit": service.commit or "", "built_at": service.built_at or ""}
    return [
        InfoMetricFamily("shopdir_build", "The build that runs.", value=build),
        *_generations(situation.generations),
        *_queue(situation.queue),
    ]


def _generations(found: Generations | Away) -> list[Metric]:
    if isinstance(found, Away):
        return [_gauge("engine_up", "Whether the search engine told what is live.", 0)]
    follower = None if found.operations is None else found.operations.follower
    return [
        _gauge("engine_up", "Whether the search engine told what is live.", 1),
        *_live(found.live),
        *([] if follower is None else _follower(follower)),
    ]


def _live(stamp: Stamp) -> list[Metric]:
    # One series: a generation's name is told by its value's label and ends with it.
    named = {"generation": stamp.generation, "schema_version": str(stamp.schema_version)}
    documents = GaugeMetricFamily("shopdir_documents", "Documents of the live generation by kind.", labels=("kind",))
    for kind, count in sorted(stamp.counts.items()):
        documents.add_metric((kind,), count)
    return [
        InfoMetricFamily("shopdir_generation", "The live generation.", value=named),
        _gauge("generation_readable", "Whether this service reads the live generation.", int(stamp.readable)),
        _gauge("generation_sequence", "The live generation's sequence.", stamp.sequence),
        _time("generation_built", "When the live generation's data was last changed.", stamp.built_at),
        documents,
    ]


def _follower(status: FollowerStatus) -> list[Metric]:
    return [
        _time("follower_told", "When the follower last told how it does.", status.told_at),
        _time("follower_caught_up", "When the follower had nothing more to do last.", status.caught_up_at),
        _gauge("follower_waiting_changes", "Changes known to wait for the follower.", status.waiting),
    ]


def _queue(found: Waiting | Away) -> list[Metric]:
    if isinstance(found, Away):
        return [_gauge("recheck_queue_up", "Whether the re-check queue answers.", 0)]
    return [
        _gauge("recheck_queue_up", "Whether the re-check queue answers.", 1),
        _gauge("recheck_queue_depth", "Re-checks that nobody has acknowledged.", found.depth),
        _gauge("recheck_queue_lag", "Re-checks that nobody has claimed yet.", found.lag),
        _gauge("recheck_queue_pending", "Re-checks that a worker holds.", found.pending),
        _gauge("recheck_queue_dead_letters", "Re-checks given up after too many deliveries.", found.dead),
    ]


def _gauge(name: str, about: str, value: float | None) -> Metric:
    return GaugeMetricFamily(f"shopdir_{name}", about, value=value)


def _time(name: str, about: str, text: str | None) -> Metric:
    found = moment(text)
    return _gauge(f"{name}_timestamp_seconds", about, None if found is None else found.timestamp())
