"""What all parts of the service use: the request context, deadlines, circuit breakers, metrics, JSON."""
