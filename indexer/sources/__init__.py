"""Where catalogues come from."""
