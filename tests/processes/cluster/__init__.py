"""A cluster of three real processes, of which one is killed at a time."""
