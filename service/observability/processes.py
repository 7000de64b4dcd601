"""Memory, processor time and file descriptors of the workers, summed up under Prometheus's usual names."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

_GAUGES: Final = (
    ("process_resident_memory_bytes", "Resident memory of all workers.", sum),
    ("process_virtual_memory_bytes", "Virtual memory of all workers.", sum),
    ("process_open_fds", "Open file descriptors of all workers.", sum),
    ("process_max_fds", "File descriptors that one worker may open: the lowest limit of all workers.", min),
    ("process_start_time_seconds", "When the youngest worker started.", max),
)  # fmt: skip


def process_families(pids: Iterable[int]) -> list[Metric]:
    """The metric families of the workers; a process that has ended is left out."""
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
        *(_gauge(name, help_text, values.get(name), combine) for name, help_text, combine in _GAUGES),
    ]


def _collect(pid: int) -> Iterable[Metric]:
    return ProcessCollector(pid=lambda: pid, registry=None).collect()


def _gauge(name: str, help_text: str, values: list[float] | None, combine: Callable[[list[float]], float]) -> Metric:
    return GaugeMetricFamily(name, help_text, value=combine(values) if values else None)
