"""What the system knows of the service's processes, added up over its workers, under Prometheus's usual names."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

_GAUGES: Final = (
    ("process_resident_memory_bytes", "Resident memory of all workers.", sum),
    ("process_virtual_memory_bytes", "Virtual memory of all workers.", sum),
    ("process_open_fds", "Open file descriptors of all workers.", sum),
    ("process_max_fds", "File descriptors that one worker may open, the smallest of all.", min),
    ("process_start_time_seconds", "When the youngest worker started.", max),
)  # fmt: skip


def process_families(pids: Iterable[int]) -> list[Metric]:
    """The families.

    Args:
        pids: of all workers; one that has ended meanwhile is left out.
    """
    found: dict[str, list[float]] = {}
    there = 0
    for pid in pids:
        samples = [sample for family in _collected(pid) for sample in family.samples]
        there += bool(samples)
        for sample in samples:
            found.setdefault(sample.name, []).append(sample.value)
    cpu = found.get("process_cpu_seconds_total", [0.0])
    return [
        GaugeMetricFamily("shopdir_workers", "Processes that serve.", value=there),
        CounterMetricFamily("process_cpu_seconds", "Time of the processor used by the workers that run.", sum(cpu)),
        *(_gauge(name, about, found.get(name), joined) for name, about, joined in _GAUGES),
    ]


def _collected(pid: int) -> Iterable[Metric]:
    return ProcessCollector(pid=lambda: pid, registry=None).collect()


def _gauge(name: str, about: str, values: list[float] | None, joined: Callable[[list[float]], float]) -> Metric:
    return GaugeMetricFamily(name, about, value=joined(values) if values else None)
