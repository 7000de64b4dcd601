"""What MCP offers beside the tools: resources, prompts, completion, and how long their answers may be kept."""
