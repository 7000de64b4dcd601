"""The engines against the oracle: random catalogues, random queries, equal answers in everything (M1 to M11)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.search.protocol import FindQuery, Found, SearchBackend, SuggestQuery, SuggestResult
from tests.rules.backends.agreement import MANY, OPENSEARCH, QUESTIONS
from tests.rules.backends.backends import Opener, reference
from tests.rules.backends.strategies import catalogues, category_names, queries

pytestmark = pytest.mark.rule(
    "M1", "M2", "M3", "M3.labels", "M4", "M5", "M6", "M6.ignored", "M6.nothing_left", "M6.did_you_mean",
    "M6.word_counts", "M7", "M9", "M9.one_shop", "M9.dotted", "M9.typos", "M9.words", "M10", "M11", "I5",
)  # fmt: skip


async def _answer(backend: SearchBackend, query: FindQuery | SuggestQuery) -> Found | SuggestResult:
    snapshot = await backend.snapshot()
    return await snapshot.find(query) if isinstance(query, FindQuery) else snapshot.suggest(query)


async def _assert_agreement(
    engine: Opener,
    catalogue: Sequence[dict[str, Any]],
    categories: Sequence[dict[str, Any]],
    asked: Sequence[FindQuery | SuggestQuery],
    directory: Path,
) -> None:
    async with (
        reference(catalogue, directory / "oracle", categories=categories) as oracle,
        engine(catalogue, directory / "engine", categories=categories) as tested,
    ):
        expected_categories = await (await oracle.snapshot()).categories()
        assert await (await tested.snapshot()).categories() == expected_categories
        for query in asked:
            assert await _answer(tested, query) == await _answer(oracle, query), query


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("opener", ["kernel", "embedded", OPENSEARCH], indirect=True)
@MANY
@given(catalogue=catalogues, data=st.data())
def test_every_engine_answers_like_the_reference(
    opener: Opener, catalogue: list[dict[str, Any]], data: st.DataObject
) -> None:
    categories = data.draw(category_names)
    asked = [data.draw(queries(catalogue)) for _ in range(QUESTIONS)]
    with TemporaryDirectory() as directory:
        asyncio.run(_assert_agreement(opener, catalogue, categories, asked, Path(directory)))
