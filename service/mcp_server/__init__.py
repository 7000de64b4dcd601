"""MCP: the tools over streamable HTTP and stdio, in protocol versions with and without a handshake (I3 to I5)."""
