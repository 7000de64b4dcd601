"""The parts of the session's OpenSearch that each test has for itself."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from opensearchpy import OpenSearch

from tests.support.emptying import delete_indices


@dataclass(frozen=True, slots=True)
class OpenSearchLocation:
    """A part of a real OpenSearch that only one test uses: its URL, and what all index names begin with."""

    url: str
    prefix: str


@pytest.fixture
def opensearch_location(opensearch_url: str) -> Iterator[OpenSearchLocation]:
    """An unused prefix in the session's OpenSearch; its indices are deleted at the end."""
    location = OpenSearchLocation(opensearch_url, f"test-{secrets.token_hex(6)}")
    yield location
    delete_indices([location.url], location.prefix)


@pytest.fixture
def client(opensearch_url: str) -> Iterator[OpenSearch]:
    """An operator's own connection."""
    with OpenSearch([opensearch_url], timeout=30) as opened:
        yield opened
