"""What every part of the service stands on: the request context, deadlines, circuit breakers, metrics, JSON."""
