"""The service on either engine, over generations that differ in nothing but the hidden shops that their source held."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from index_mappings.generations import Stamp, first_stamp
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.protocol import Sink
from service.app import create_app
from service.limits.policy import QuotaClass
from service.settings.service import Settings
from tests.rules.indistinguishable.subjects import Records, Service
from tests.support.callers import issue
from tests.support.emptying import unused_prefix
from tests.support.served import served, settings_in
from tests.support.worlds import in_memory

GENERATION: Final = "20310101t000000000000-abcdef"
BUILT_AT: Final = datetime(2031, 1, 1, tzinfo=UTC)


def projected(records: Records, directory: Path) -> dict[str, list[Any]]:
    """What the real indexer makes of a catalogue, ready to be written under any name."""
    return in_memory(directory, **records).documents


def published(sink: Sink, documents: dict[str, list[Any]]) -> Stamp:
    """Write the documents as a generation of a fixed name and time, so that nothing but its documents can differ."""
    writer = sink.begin(GENERATION)
    for kind, of_kind in documents.items():
        writer.add(kind, of_kind)
    stamp = first_stamp(GENERATION, BUILT_AT).counted({kind: len(of_kind) for kind, of_kind in documents.items()})
    sealed = writer.seal(stamp)
    sink.publish(GENERATION, None)
    return sealed


@dataclass(frozen=True, slots=True)
class World:
    service: Service
    directory: Path
    settings: Settings


class Opener(Protocol):
    def __call__(self, records: Records) -> World: ...


@contextmanager
def _world(records: Records, directory: Path, opensearch_url: str | None) -> Iterator[World]:
    with unused_prefix(opensearch_url) as prefix, ExitStack() as opened:
        sink: Sink
        engine: dict[str, Any]
        if opensearch_url is None:
            sink, engine = EmbeddedSink(directory / "index"), {"engine": "embedded", "data_dir": directory / "index"}
        else:
            sink = OpenSearchSink([opensearch_url], prefix)
            engine = {"engine": "opensearch", "opensearch_urls": (opensearch_url,), "index_prefix": prefix}
        opened.callback(sink.close)
        published(sink, projected(records, directory))
        settings = settings_in(
            directory,
            **engine,
            quota_classes={"default": QuotaClass(reads=100_000, suggest=100_000, reports=100_000)},
            site_sitemap=True,
            public_url="https://shops.example",
        )
        base = opened.enter_context(served(create_app(settings)))
        yield World(Service(base, issue(settings.token_file).text), directory, settings)


@pytest.fixture(scope="module", params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def open_world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opener]:
    """Serves catalogues on one engine; all end with the module."""
    url = request.getfixturevalue("opensearch_url") if request.param == "opensearch" else None
    with ExitStack() as opened:
        yield lambda records: opened.enter_context(_world(records, tmp_path_factory.mktemp("world"), url))
