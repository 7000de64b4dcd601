"""Tests of the whole service; each is a sentence and builds its own small world.

OpenSearch, Redis and the development data are real or absent: nothing here stands in for them (see
`tests.support.real`).
"""
