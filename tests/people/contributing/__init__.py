"""CONTRIBUTING.md held to what it says of tools, indices and backends, and the tests that it names exist."""
