"""API tokens: issued and revoked by the operator, confirmed for every call (Q1)."""
