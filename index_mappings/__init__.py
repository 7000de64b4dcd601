"""The contract between the indexer and the service: documents, text, order, generations.

This package imports neither side, no framework and no network client: it holds data and pure functions only.
"""
