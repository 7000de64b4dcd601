"""The state of the service, for operators."""
