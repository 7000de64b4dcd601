"""What all HTTP responses have in common, over REST, MCP and the page."""
