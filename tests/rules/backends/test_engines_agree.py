"""The engines against the oracle: random catalogues, random queries, equal answers in everything (M1 to M11)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.search.protocol import FindQuery, Found, Snapshot, SuggestQuery, SuggestResult
from tests.rules.backends.agreement import MANY, OPENSEARCH, QUESTIONS, compare
from tests.rules.backends.backends import Opener
from tests.rules.backends.strategies import catalogues, category_names, queries

pytestmark = pytest.mark.rule(
    "M1", "M2", "M3", "M3.labels", "M4", "M5", "M6", "M6.ignored", "M6.nothing_left", "M6.did_you_mean",
    "M6.word_counts", "M7", "M9", "M9.one_shop", "M9.dotted", "M9.typos", "M9.words", "M10", "M11", "I5",
)  # fmt: skip


async def _answer(snapshot: Snapshot, query: FindQuery | SuggestQuery) -> Found | SuggestResult:
    return await snapshot.find(query) if isinstance(query, FindQuery) else snapshot.suggest(query)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("opener", ["kernel", "embedded", OPENSEARCH], indirect=True)
@MANY
@given(catalogue=catalogues, data=st.data())
def test_every_engine_answers_like_the_reference(
    opener: Opener, catalogue: list[dict[str, Any]], data: st.DataObject
) -> None:
    categories = data.draw(category_names)
    asked = [data.draw(queries(catalogue)) for _ in range(QUESTIONS)]

    async def ask(oracle: Snapshot, tested: Snapshot) -> None:
        assert await tested.categories() == await oracle.categories()
        for query in asked:
            assert await _answer(tested, query) == await _answer(oracle, query), query

    compare(opener, ask, catalogue, categories=categories)
