"""`check` itself, tested against the real service and against servers that are each wrong in one way."""
