"""What MCP offers besides tools: resources, prompts, completion, and how long answers may be cached."""
