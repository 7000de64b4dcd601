"""No metric is discarded because its method is missing: the base class discards silently."""

from service.observability.prometheus import PrometheusMetrics
from service.runtime.telemetry import Metrics


def test_prometheus_records_every_metric_that_parts_report() -> None:
    reported = {name for name in vars(Metrics) if not name.startswith("_")}
    assert "answered" in reported
    assert reported - vars(PrometheusMetrics).keys() == set()
