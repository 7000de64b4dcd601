"""Settings and exit codes, shared by the service and the indexer; it imports neither."""
