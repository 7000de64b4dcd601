"""The embedded engine: Tantivy indices in a local directory."""
