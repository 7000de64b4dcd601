"""Names of a test's own in a real OpenSearch and a real Redis, which are left as empty as they were found."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opensearchpy import OpenSearch
from redis import Redis

_NAMES_PER_REQUEST: Final = 30


@contextmanager
def unused_prefix(opensearch_url: str | None = None, redis_url: str | None = None) -> Iterator[str]:
    """What no index and no key begins with; at the end none is left in the servers at these URLs."""
    prefix = f"test-{secrets.token_hex(6)}"
    try:
        yield prefix
    finally:
        if opensearch_url is not None:
            _delete_indices(opensearch_url, prefix)
        if redis_url is not None:
            with Redis.from_url(redis_url) as client:
                for key in list(client.scan_iter(f"*{prefix}*")):
                    client.delete(key)


def _delete_indices(url: str, prefix: str) -> None:
    with OpenSearch([url]) as client:
        names = sorted(client.indices.get(index=f"{prefix}-*", params={"expand_wildcards": "all"}))
        # Each request is a change of the cluster's state; a request line has at most 4 KiB.
        for start in range(0, len(names), _NAMES_PER_REQUEST):
            client.indices.delete(index=",".join(names[start : start + _NAMES_PER_REQUEST]))
