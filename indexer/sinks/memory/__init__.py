"""The sink in memory, for the reference backend."""
