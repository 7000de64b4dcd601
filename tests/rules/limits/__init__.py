"""Quotas: both limiters under one suite, the fallback, and what callers are told."""
