"""The black-box check of a running service: it sends requests like any client, and imports nothing of it."""
