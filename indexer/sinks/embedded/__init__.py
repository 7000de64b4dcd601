"""The embedded sink: Tantivy indices and SQLite files in a local directory."""
