"""The sinks of generations: the embedded engine and OpenSearch."""
