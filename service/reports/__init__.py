"""Reports of callers, stored permanently, and the queue of re-checks."""
