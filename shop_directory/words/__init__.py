"""The words of a query, and the categories that they mean."""
