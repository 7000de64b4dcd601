"""The sources of catalogues and of their changes: NDJSON files, streams, SQL databases."""
