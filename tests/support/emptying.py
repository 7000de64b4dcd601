"""Removing what a test has made in a real OpenSearch: a prefix is left as empty as it was found."""

from collections.abc import Sequence

from opensearchpy import OpenSearch


def empty_place(urls: Sequence[str], prefix: str) -> None:
    """Delete all indices of a prefix, that of the lease included."""
    with OpenSearch(list(urls)) as client:
        names = sorted(client.indices.get(index=f"{prefix}-*", params={"expand_wildcards": "all"}))
        for name in names:
            client.indices.delete(index=name)
