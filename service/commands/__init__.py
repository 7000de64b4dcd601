"""The operator's commands for tokens and re-checks."""
