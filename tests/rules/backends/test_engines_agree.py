"""The engines against the oracle: random catalogues, random queries, equal answers in everything (M1 to M11).

`SHOP_DIRECTORY_AGREEMENT=100x20` asks for another number of catalogues and of queries for each; 15x20 otherwise.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.search.protocol import FindQuery, Found, SearchBackend, SuggestQuery, SuggestResult
from tests.rules.backends.backends import Opener, embedded, kernel, opensearch_at, reference
from tests.rules.backends.strategies import catalogues, category_names, queries

_CATALOGUES, _QUERIES = map(int, os.environ.get("SHOP_DIRECTORY_AGREEMENT", "15x20").split("x"))

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


def _check(engine: Opener, catalogue: list[dict[str, Any]], data: st.DataObject) -> None:
    categories = data.draw(category_names)
    asked = [data.draw(queries(catalogue)) for _ in range(_QUERIES)]
    with TemporaryDirectory() as directory:
        asyncio.run(_assert_agreement(engine, catalogue, categories, asked, Path(directory)))


_MANY = settings(
    max_examples=_CATALOGUES,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("engine", [kernel, embedded])
@_MANY
@given(catalogue=catalogues, data=st.data())
def test_segments_and_the_embedded_engine_answer_like_the_reference(
    engine: Opener, catalogue: list[dict[str, Any]], data: st.DataObject
) -> None:
    _check(engine, catalogue, data)


@pytest.mark.opensearch
@pytest.mark.timeout(1_800)
@_MANY
@given(catalogue=catalogues, data=st.data())
def test_opensearch_answers_like_the_reference(
    opensearch_url: str, catalogue: list[dict[str, Any]], data: st.DataObject
) -> None:
    _check(opensearch_at(opensearch_url), catalogue, data)
