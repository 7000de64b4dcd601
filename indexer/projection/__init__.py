"""Projection: public records become the documents of a generation."""
