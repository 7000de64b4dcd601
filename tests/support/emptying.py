"""Removing what a test has made in a real OpenSearch: a prefix is left as empty as it was found."""

from collections.abc import Sequence
from typing import Final

from opensearchpy import OpenSearch

_NAMES_PER_REQUEST: Final = 30


def delete_indices(urls: Sequence[str], prefix: str) -> None:
    with OpenSearch(list(urls)) as client:
        names = sorted(client.indices.get(index=f"{prefix}-*", params={"expand_wildcards": "all"}))
        # Each request is a change of the cluster's state; a request line has at most 4 KiB.
        for start in range(0, len(names), _NAMES_PER_REQUEST):
            client.indices.delete(index=",".join(names[start : start + _NAMES_PER_REQUEST]))
