"""Every test of this directory runs on every backend."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from service.search.protocol import Snapshot
from tests.conformance.backends import Opener, Shops, embedded, opensearch_at, reference

Directory = Callable[[Shops], Awaitable[Snapshot]]


@pytest.fixture(params=["reference", "embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def opener(request: pytest.FixtureRequest) -> Opener:
    """One backend, by its name."""
    if request.param == "opensearch":
        return opensearch_at(request.getfixturevalue("opensearch_url"))
    return {"reference": reference, "embedded": embedded}[request.param]


@pytest.fixture
async def directory(opener: Opener, tmp_path: Path) -> AsyncIterator[Directory]:
    """Builds a directory of the given shops and returns its snapshot; may be called more than once."""
    async with AsyncExitStack() as stack:
        built = 0

        async def build(shops: Shops) -> Snapshot:
            nonlocal built
            built += 1
            backend = await stack.enter_async_context(opener(shops, tmp_path / str(built)))
            return await backend.snapshot()

        yield build
