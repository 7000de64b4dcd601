"""Metrics in the Prometheus format, and the log."""
