"""Quotas: both limiters under one suite, the fallback, and the headers for callers."""
