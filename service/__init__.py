"""The read side: a stateless service that answers from the indices over REST, MCP and stdio."""
