"""Wishes about the development shops: the reference and both engines answer each as the table says."""

from pathlib import Path

import pytest

from tests.engines.relevance.development import embedded_engine, opensearch_engine
from tests.rules.backends.test_matching_cases import wishes, wrong_answers
from tests.support.catalogues import build_into
from tests.support.memory_sink import MemorySink
from tests.support.reference.backend import ReferenceBackend

pytestmark = pytest.mark.rule("I5", "M3.wishes", "M5.stems")


@pytest.mark.dev_data
@pytest.mark.opensearch
@pytest.mark.timeout(300)
async def test_both_engines_understand_the_wishes_about_the_development_shops(
    dev_data: Path, opensearch_url: str, tmp_path: Path
) -> None:
    cases = wishes()["development"].cases
    async with (
        embedded_engine(dev_data, tmp_path) as embedded,
        opensearch_engine(dev_data, opensearch_url) as opensearch,
    ):
        for backend in (embedded, opensearch):
            assert await wrong_answers(await backend.snapshot(), cases) == []


@pytest.mark.dev_data
async def test_the_reference_understands_the_wishes_about_the_development_shops(dev_data: Path) -> None:
    sink = MemorySink()
    build_into(sink, dev_data / "dev-shops.ndjson")
    assert sink.stamp is not None
    backend = ReferenceBackend(sink.stamp, sink.documents)
    assert await wrong_answers(backend, wishes()["development"].cases) == []
