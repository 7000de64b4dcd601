"""Wishes about the development shops: both engines answer each as the table says."""

from pathlib import Path

import pytest

from tests.engines.relevance.development import embedded_engine, opensearch_engine
from tests.rules.backends.test_matching_cases import WISHES, wrong_answers

pytestmark = pytest.mark.rule("I5", "M3.wishes", "M5.stems")


@pytest.mark.dev_data
@pytest.mark.opensearch
@pytest.mark.timeout(300)
async def test_both_engines_understand_the_wishes_about_the_development_shops(
    dev_data: Path, opensearch_url: str, tmp_path: Path
) -> None:
    cases = WISHES["development"]["cases"]
    async with (
        embedded_engine(dev_data, tmp_path) as embedded,
        opensearch_engine(dev_data, opensearch_url) as opensearch,
    ):
        for backend in (embedded, opensearch):
            assert await wrong_answers(await backend.snapshot(), cases) == []
