"""The contract between the write side and the read side: documents, text, order, generations.

It imports neither side, no framework and no network client: pure data and functions only. `environment` is how both
read the settings that they have in common.
"""
