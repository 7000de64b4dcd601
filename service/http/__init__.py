"""What REST, MCP over HTTP and the page share: responses, middleware and bounded endpoints."""
