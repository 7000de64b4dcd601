"""Search backends behind one protocol: embedded, OpenSearch, and the plain reference that is the oracle."""
