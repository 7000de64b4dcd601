"""Reconciliation: a generation is compared with its state, and the state with its source."""
