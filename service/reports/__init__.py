"""Reports and re-checks: what callers say is wrong, kept for good, and the queue of what is to be looked at again."""
