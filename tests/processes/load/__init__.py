"""The service as a process under more than it can do, slow parts, slow and leaving callers, signals, and time."""
