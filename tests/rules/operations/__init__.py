"""What those who run the service read of it: the state, the metrics and the log."""
