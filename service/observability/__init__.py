"""Metrics in the Prometheus format, the log, and traces."""
