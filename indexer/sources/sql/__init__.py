"""A catalogue in an operator's SQL database."""
