"""Reconciliation: compares a generation with its state, and the state with its source."""
