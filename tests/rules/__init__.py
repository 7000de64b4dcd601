"""The rules that bind the service, and the check that every one in scope has a test."""
