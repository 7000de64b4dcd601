"""Tokens and origins: both stores under one suite, the verifier, the command, and callers' addresses."""
