"""Where generations are written: embedded, OpenSearch, and memory for the oracle."""
