"""The operator's commands of the service: tokens and re-checks."""
