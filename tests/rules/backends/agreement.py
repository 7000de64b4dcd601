"""How the suites of random catalogues run: how many examples, of which engines, next to the oracle.

`SHOP_DIRECTORY_AGREEMENT=100x20` asks for another number of catalogues and of questions for each; 15x20 otherwise.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from service.search.protocol import Snapshot
from tests.rules.backends.backends import Opener, reference
from tests.support.catalogues import Lines

CATALOGUES, QUESTIONS = map(int, os.environ.get("SHOP_DIRECTORY_AGREEMENT", "15x20").split("x"))
OPENSEARCH: Final = pytest.param("opensearch", marks=pytest.mark.opensearch)
# The fixture only says which engine is opened: it holds nothing from one example to the next.
MANY: Final = settings(
    max_examples=CATALOGUES,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def compare(
    opener: Opener, ask: Callable[[Snapshot, Snapshot], Awaitable[None]], shops: Lines, **others: Lines
) -> None:
    """Build a catalogue for the reference and for a tested backend, and ask both."""

    async def ask_both(directory: Path) -> None:
        async with (
            reference(shops, directory / "oracle", **others) as oracle,
            opener(shops, directory / "engine", **others) as tested,
        ):
            await ask(await oracle.snapshot(), await tested.snapshot())

    with TemporaryDirectory() as directory:
        asyncio.run(ask_both(Path(directory)))
