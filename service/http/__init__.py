"""What REST, MCP over HTTP and the page share: messages, and the layers around endpoints."""
