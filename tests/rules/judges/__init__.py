"""Judges from outside: other people's tools and hostile clients against the service, over real HTTP on loopback.

They read the OpenAPI document and tools/list, so that what the registry gains is judged without a change.
"""
