"""The HTTP server: processes, connections, and the protocol with its bounds."""
