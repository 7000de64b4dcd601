"""API tokens: issued and revoked by the operator, verified for every call (Q1)."""
