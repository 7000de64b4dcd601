"""An index that goes while a build writes it: the build begins once more by itself, and no more than once (G1, G2)."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from opensearchpy import OpenSearch

from index_mappings.generations import Operations, Stamp, index_name
from index_mappings.opensearch import TYPEAHEAD
from indexer.jobs.build import BuildOptions, BuildSummary, build
from indexer.sinks.failures import IndexLostError
from indexer.sinks.opensearch import generation as writing
from indexer.sinks.opensearch.bulk_loading import IndexWatch
from indexer.sinks.opensearch.sink import OpenSearchSink
from indexer.sinks.protocol import GenerationWriter, MergingWriter
from indexer.sources.ndjson import NdjsonCatalogue
from tests.processes.endurance.test_kills import live_documents
from tests.processes.endurance.worlds import Location, expected_documents, write_world

SHOPS: Final = 50
# A cluster is given ten seconds to promote a copy.
LOST_AFTER_S: Final = 1.0
# When the offers' index goes, and what is said of that: {} is its name.
LOSS_POINTS: Final = {
    "while it is written": "the index {} is gone",
    "before its last look": "the index {} is gone",
    "before it is sealed": "the generation could not be refreshed: NotFoundError",
    "before it is verified": "the offers could not be counted: NotFoundError",
}

WRITTEN: Final = "when all documents are written"
_NOWHERE: Final = {"settings": {"index.routing.allocation.require._name": "nobody"}}

pytestmark = pytest.mark.opensearch


class LosingWriter:
    """Passes everything on, and loses the offers' index at one point, as an operator's mistake would."""

    def __init__(self, writer: GenerationWriter, point: str, lose: Callable[[], None]) -> None:
        self._writer, self._point, self._lose = writer, point, lose
        self.count, self.read = writer.count, writer.read
        self.count_ids = writer.count_ids
        self.page = writer.page
        assert isinstance(writer, MergingWriter)
        self.merge = writer.merge
        self.operations = writer.operations

    def add(self, kind: str, documents: Iterable[object], tick: Callable[[], None] = lambda: None) -> int:
        return self._writer.add(kind, self._losing(documents) if kind == "offers" else documents, tick)

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        self._reach(WRITTEN)
        self._writer.write_operations(operations, wait_for_engine=wait_for_engine)

    def seal(self, stamp: Stamp) -> Stamp:
        self._reach("before it is sealed")
        sealed = self._writer.seal(stamp)
        self._reach("before it is verified")
        return sealed

    def _losing(self, documents: Iterable[object]) -> Iterator[object]:
        for location, document in enumerate(documents):
            if location == SHOPS:
                self._reach("while it is written")
            yield document
        self._reach("before its last look")

    def _reach(self, point: str) -> None:
        if point == self._point:
            self._lose()


class LosingSink(OpenSearchSink):
    """Loses the offers' index of its first generations, or all copies of another one, as with the only node of it."""

    def __init__(self, location: Location, point: str, times: int, red: str | None = None) -> None:
        super().__init__([location.target], location.prefix, letters=location.folder / "letters")
        self._location, self._point, self._times, self._red = location, point, times, red
        self.begun: list[str] = []

    def begin(self, generation: str) -> GenerationWriter:  # type: ignore[override]  # a wider writer
        self.begun.append(generation)
        writer = super().begin(generation)
        if len(self.begun) > self._times:
            return writer
        return LosingWriter(writer, self._point, lambda: self._lose(generation))

    def _lose(self, generation: str) -> None:
        index = index_name(self._location.prefix, self._red or "offers", generation)
        with OpenSearch([self._location.target]) as client:
            client.indices.delete(index=index)
            if self._red:
                client.indices.create(index=index, body=_NOWHERE, params={"wait_for_active_shards": "0"})


@pytest.mark.rule("G1", "G2")
@pytest.mark.parametrize("kind", ["shops", TYPEAHEAD])
def test_a_build_restarts_soon_when_an_index_has_no_copy_left(
    opensearch: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(writing, "IndexWatch", partial(IndexWatch, lost_after=LOST_AFTER_S))
    assert (
        restarted(LosingSink(opensearch, WRITTEN, times=1, red=kind), opensearch, tmp_path).seconds < LOST_AFTER_S + 20
    )


@pytest.mark.rule("G1", "G2")
def test_a_build_that_loses_an_index_restarts_once_and_publishes(opensearch: Location, tmp_path: Path) -> None:
    restarted(LosingSink(opensearch, "before it is verified", times=1), opensearch, tmp_path)


def restarted(sink: LosingSink, location: Location, folder: Path) -> BuildSummary:
    catalogue = write_world(folder / "amber", "amber", SHOPS)
    summary = build(NdjsonCatalogue(catalogue), sink, location.states(), BuildOptions(wait=0))
    sink.close()
    assert (summary.published, summary.restarts, len(sink.begun)) == (True, 1, 2)
    assert summary.stamp.generation == sink.begun[1]
    assert live_documents(location) == (sink.begun[1], expected_documents(catalogue))
    assert location.remains() == []
    return summary


@pytest.mark.rule("G1", "G2")
@pytest.mark.parametrize("point", LOSS_POINTS)
def test_a_build_that_loses_an_index_twice_fails_and_leaves_what_was_live(
    opensearch: Location, tmp_path: Path, point: str
) -> None:
    live = write_world(tmp_path / "amber", "amber", SHOPS)
    sink = LosingSink(opensearch, point, times=0)
    first = build(NdjsonCatalogue(live), sink, opensearch.states(), BuildOptions(wait=0)).stamp.generation
    sink.close()

    sink = LosingSink(opensearch, point, times=2)
    catalogue = write_world(tmp_path / "violet", "violet", SHOPS)
    with pytest.raises(IndexLostError) as failed:
        build(NdjsonCatalogue(catalogue), sink, opensearch.states(), BuildOptions(wait=0))
    assert str(failed.value) == LOSS_POINTS[point].format(index_name(opensearch.prefix, "offers", sink.begun[1]))
    generations = [found.name for found in sink.generations()]
    sink.close()
    assert (len(sink.begun), generations) == (2, [first])
    assert live_documents(opensearch) == (first, expected_documents(live))
    assert opensearch.remains() == []
