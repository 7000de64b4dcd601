"""Reports and re-checks: one suite on both stores, what only one of them can show, and the kill."""
