"""Quotas: how much of the service one caller may use (Q2, Q4)."""
