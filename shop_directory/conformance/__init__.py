"""The black-box test of a running instance: it asks like any client, and imports nothing of the service."""
