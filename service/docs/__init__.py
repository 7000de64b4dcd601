"""Pages that are generated from the tool registry: docs/tools.md and /llms.txt."""
