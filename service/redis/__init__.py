"""How the service reaches Redis: one server, sentinels or a cluster."""
