"""Pages that are generated from the tool registry: docs/tools.md, docs/mcp.md and /llms.txt."""
