"""What those who run the service see of it: metrics in the Prometheus format, and the lines of the log."""
