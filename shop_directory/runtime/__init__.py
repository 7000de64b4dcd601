"""What search and service report of a request, and how long they wait: context, metrics, circuit breaker."""
