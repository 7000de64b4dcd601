"""The MCP door: the same tools over streamable HTTP and stdio, in both eras of the protocol (I3 to I5)."""
