"""Search backends behind one protocol: embedded and OpenSearch."""
