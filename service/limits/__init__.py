"""Quotas: how many requests one caller may make (Q2, Q4)."""
