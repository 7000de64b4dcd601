"""Sources that mean harm, or behave as if they did (V1, E5, E6, A10)."""
