"""Acceptance queries asked of a generation that is not published, on both real engines (G1)."""

import json
import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch

from index_mappings.documents import SCHEMA_VERSION
from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp, index_name
from indexer.acceptance import Queries, acceptance_check, failures_of, read_acceptance
from indexer.commands.parts import SAMPLE
from indexer.jobs.build import AcceptanceFailedError
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Sink
from shop_directory.settings.locations import LocationSettings
from tests.engines.conftest import Engine
from tests.engines.integration.generations import Documents, projected, publish, sealed
from tests.support.catalogues import build_into, shop
from tests.support.real.sources import REPOSITORY

PAGE: Final = REPOSITORY / "docs" / "indexing.md"
HIDDEN: Final = "Quillomere"


@dataclass(frozen=True, slots=True)
class Built:
    sink: Sink
    index: LocationSettings
    stamp: Stamp


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    """Two lamps, each for one country, a candle for the world, and a shop that is hidden."""
    return projected(
        [
            shop("Lamp", "lamp.internal", id="lamp", popularity=1, categories=["light"], countries=["DE"]),
            shop("Lampion", "lampion.internal", id="lampion", categories=["light"], countries=["FR"]),
            shop("Candle", "candle.internal", id="candle", categories=["light", "wax"], countries=["WORLDWIDE"]),
            shop(HIDDEN, "quillomere.internal", id="quillomere", visibility="under_review", categories=["night"]),
        ],
        tmp_path,
    )


@pytest.fixture
def built(engine: Engine, documents: Documents) -> Built:
    return _built(engine, documents)


def _built(engine: Engine, documents: Documents) -> Built:
    publish(engine.sink, Documents(dict.fromkeys(documents.by_kind, ())))
    return Built(engine.sink, engine.settings, sealed(engine.sink, documents)[0])


def _written(directory: Path, *lines: Mapping[str, Any]) -> Path:
    path = directory / "golden.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def _read(directory: Path, *lines: Mapping[str, Any]) -> Queries:
    return read_acceptance(_written(directory, *lines))


def _find(query: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return {"tool": "find_shop", "query": query, **fields}


def _suggest(query: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    return {"tool": "suggest", "query": query, **fields}


def test_queries_that_the_new_generation_answers_as_expected_pass(built: Built, tmp_path: Path) -> None:
    queries = _read(
        tmp_path,
        _find("lamp", expect=["lamp.internal"], within=1, minimum_total=2),
        _find("lamp", expect=["lampion", "lamp"], within=2, absent=["candle"]),
        _find("lamp\tqqxx", expect=["lamp"]),
        _find("lamp", country="FR", expect=["lampion"], absent=["lamp"], within=1),
        _find("", category="wax", expect=["https://www.candle.internal/"], absent=["lamp", "lampion"], within=1),
        _find(HIDDEN, absent=["quillomere", "quillomere.internal"]),
        _suggest("lmap", expect=["lamp"], within=1),
        _suggest("candel", country="JP", expect=["candle.internal"], absent=["lamp"]),
        _suggest("", expect=["lamp"], within=1),
    )
    assert failures_of(queries, built.index, built.stamp) == ()
    live = built.sink.live()
    assert live is not None
    assert live.generation != built.stamp.generation


def test_each_difference_from_an_expectation_is_reported_by_line_and_field(built: Built, tmp_path: Path) -> None:
    path = _written(
        tmp_path,
        _find("lamp", expect=["lamp", "lampion"], within=2),
        _find("lamp", expect=["lampion"], within=1),
        _find("lamp", expect=["lamp", "candle"], absent=["lampion.internal"], minimum_total=3),
        _find("lamp", country="DE", expect=["lampion"]),
        _find("", category="night", absent=["lamp"]),
        _suggest("lmap", expect=["candle"], absent=["lamp"]),
    )
    failures = (
        ("golden.ndjson:2", "expect.0 is not among the first 1, but in place 2"),
        ("golden.ndjson:3", "expect.1 is not among the first 50"),
        ("golden.ndjson:3", "absent.0 is in place 2"),
        ("golden.ndjson:3", "minimum_total is 3, but there are 2"),
        ("golden.ndjson:4", "expect.0 is not among the first 50"),
        ("golden.ndjson:5", "category is carried by no shop"),
        ("golden.ndjson:6", "expect.0 is not among the first 8"),
        ("golden.ndjson:6", "absent.0 is in place 1"),
    )
    with pytest.raises(AcceptanceFailedError) as raised:
        acceptance_check(path, built.index, None)(built.stamp)
    named = "; ".join(f"{location}: {reason}" for location, reason in failures)
    assert str(raised.value) == f"5 of 6 acceptance queries failed: {named}"


@pytest.mark.rule("V1.silent", "V2")
def test_an_expected_shop_under_review_fails_as_an_unknown_one_and_is_named_nowhere(
    built: Built, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    messages = []
    for name in ("quillomere", "qqxxqqxxqq"):
        path = _written(
            tmp_path,
            _find(name, expect=[name], minimum_total=1),
            _suggest(name, expect=[f"{name}.internal"]),
            _find("lamp", expect=["lamp", name]),
        )
        with pytest.raises(AcceptanceFailedError) as raised:
            acceptance_check(path, built.index, None)(built.stamp)
        messages.append(str(raised.value))
    assert messages[0] == (
        "3 of 3 acceptance queries failed: golden.ndjson:1: expect.0 is not among the first 50;"
        " golden.ndjson:1: minimum_total is 1, but there are 0; golden.ndjson:2: expect.0 is not among the first 8;"
        " golden.ndjson:3: expect.1 is not among the first 50"
    )
    assert messages[1] == messages[0]
    shown = capfd.readouterr()
    assert HIDDEN.lower() not in (caplog.text + shown.out + shown.err).lower()


def test_absent_and_expect_count_to_the_end_of_their_page_and_no_further(tmp_path: Path) -> None:
    many = [shop(f"Lamp {number:03}", id=f"s{number:03}", popularity=1_000 - number) for number in range(1, 121)]
    sink = EmbeddedSink(tmp_path / "index")
    stamp, _ = sealed(sink, projected(many, tmp_path))
    queries = _read(
        tmp_path,
        _find("lamp", expect=["s050"], absent=["s051"], minimum_total=120),
        _find("lamp", expect=["s051"], absent=["s050"]),
        _find("lamp", expect=["s100"], within=100, absent=["s051"]),
        _find("lamp", expect=["s101"], within=100),
        _suggest("lamp", expect=["s008"], absent=["s009"]),
        _suggest("lamp", expect=["s009"], absent=["s008"]),
        _suggest("lamp", expect=["s020"], within=20, absent=["s009"]),
    )
    assert failures_of(queries, LocationSettings(data_dir=tmp_path / "index"), stamp) == (
        ("golden.ndjson:2", "expect.0 is not among the first 50"),
        ("golden.ndjson:2", "absent.0 is in place 50"),
        ("golden.ndjson:4", "expect.0 is not among the first 100"),
        ("golden.ndjson:6", "expect.0 is not among the first 8"),
        ("golden.ndjson:6", "absent.0 is in place 8"),
    )


def test_twenty_failures_are_named_and_the_others_counted(
    embedded_engine: Engine, documents: Documents, tmp_path: Path
) -> None:
    built = _built(embedded_engine, documents)
    path = _written(tmp_path, *[_find("lamp", absent=["lamp"])] * 23, *[_find("lamp", expect=["lamp"])] * 7)
    with pytest.raises(
        AcceptanceFailedError, match=r"^23 of 30 acceptance queries failed: golden\.ndjson:1: .*; and 3 more$"
    ) as error:
        acceptance_check(path, built.index, None)(built.stamp)
    assert str(error.value).count("absent.0") == 20


def test_a_generation_of_which_the_shops_are_gone_is_an_error_and_passes_nothing(built: Built, tmp_path: Path) -> None:
    if built.index.engine == "embedded":
        shutil.rmtree(generation_directory(built.index.data_dir, built.stamp.generation))
    else:
        with OpenSearch(list(built.index.opensearch_urls)) as client:
            client.indices.delete(index=index_name(built.index.index_prefix, "shops", built.stamp.generation))
    # Every one of them would pass on an empty answer.
    queries = _read(tmp_path, _find(HIDDEN, absent=["quillomere"]), _suggest("lamp", absent=["candle"]))
    with pytest.raises(SinkError, match=r"^the acceptance queries were not answered: .* no longer there$") as raised:
        failures_of(queries, built.index, built.stamp, patience=0.5)
    assert not isinstance(raised.value, AcceptanceFailedError)


@pytest.mark.opensearch
def test_a_failing_engine_is_asked_again_until_the_retry_limit(
    opensearch_engine: Engine, documents: Documents, tmp_path: Path
) -> None:
    opensearch = _built(opensearch_engine, documents)
    index = index_name(opensearch.index.index_prefix, "shops", opensearch.stamp.generation)
    queries = _read(tmp_path, _find(HIDDEN, absent=["quillomere"]))
    with OpenSearch(list(opensearch.index.opensearch_urls)) as client:
        client.indices.close(index=index)
        with pytest.raises(SinkError, match=r"were not answered: a search in .* failed"):
            failures_of(queries, opensearch.index, opensearch.stamp, patience=0.5)
        mended = Timer(1.0, client.indices.open, kwargs={"index": index})
        mended.start()
        assert failures_of(queries, opensearch.index, opensearch.stamp) == ()
        assert mended.finished.is_set()
        mended.join()


@pytest.mark.rule("G4.schema")
def test_a_generation_of_another_schema_version_is_not_asked(
    embedded_engine: Engine, documents: Documents, tmp_path: Path
) -> None:
    embedded = _built(embedded_engine, documents)
    other = replace(embedded.stamp, schema_version=SCHEMA_VERSION + 1)
    queries = _read(tmp_path, _find("lamp", expect=["lamp"]))
    with pytest.raises(SinkError, match=f"it has schema version {SCHEMA_VERSION + 1}, the service reads"):
        failures_of(queries, embedded.index, other)


def test_the_example_of_the_page_holds_for_the_sample_catalogue(tmp_path: Path) -> None:
    (example,) = re.findall(r"```ndjson\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "golden.ndjson"
    path.write_text(example, encoding="utf-8")
    stamp = build_into(EmbeddedSink(tmp_path / "index"), SAMPLE).stamp
    queries = read_acceptance(path)
    assert len(queries) == 6
    assert failures_of(queries, LocationSettings(data_dir=tmp_path / "index"), stamp) == ()
