"""Every test of this directory runs on every backend."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from shop_directory.search.protocol import Snapshot
from tests.rules.backends.backends import Opener, embedded, kernel, opensearch_at, reference
from tests.support.catalogues import Lines


class Directory(Protocol):
    """Builds a directory of shops, and of other records by the names of their types."""

    async def __call__(self, *shops: Mapping[str, Any], **others: Lines) -> Snapshot:
        """Build it and return its snapshot."""


@pytest.fixture(params=["reference", "kernel", "embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def opener(request: pytest.FixtureRequest) -> Opener:
    if request.param == "opensearch":
        return opensearch_at(request.getfixturevalue("opensearch_url"))
    return {"reference": reference, "embedded": embedded, "kernel": kernel}[request.param]


@pytest.fixture
async def directory(opener: Opener, tmp_path: Path) -> AsyncIterator[Directory]:
    async with AsyncExitStack() as stack:
        built = 0

        async def build(*shops: Mapping[str, Any], **others: Lines) -> Snapshot:
            nonlocal built
            built += 1
            backend = await stack.enter_async_context(opener(shops, tmp_path / str(built), **others))
            return await backend.snapshot()

        yield build
