"""The HTTP doors beside MCP: the tool routes, /suggest, the probes, and what every HTTP answer has in common."""
