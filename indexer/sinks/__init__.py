"""The sinks of generations: the embedded engine, OpenSearch, and memory for the reference backend."""
