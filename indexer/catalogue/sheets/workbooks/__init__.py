"""Reads workbooks and JSON lists as streams, in a process with a memory limit."""
