"""A build that is interrupted leaves the live generation as it was, and nothing of its own.

The sinks here pass everything on to the embedded one and are interrupted at one moment, as by Ctrl-C.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.generations import Stamp
from indexer.build import build
from indexer.problems import ProblemLog
from indexer.progress import Advance
from indexer.sinks.embedded import EmbeddedSink
from indexer.sinks.memory import MemorySink
from indexer.sinks.protocol import GenerationWriter, Sink, SinkError
from indexer.sources.ndjson import AnyRecord, NdjsonCatalogue, Read
from tests.catalogues import build_into, shop, write_catalogue

MOMENTS: Final = ("add", "seal", "count", "read", "before publish")


class InterruptedSource(NdjsonCatalogue):
    """Is interrupted after its first shop."""

    def records(
        self, kind: str, model: type[AnyRecord], problems: ProblemLog, advance: Advance
    ) -> Iterator[Read[AnyRecord]]:
        yield next(super().records(kind, model, problems, advance))
        raise KeyboardInterrupt


class InterruptedSink:
    """Is interrupted at one moment of the writing."""

    def __init__(self, sink: Sink, moment: str) -> None:
        self._sink = sink
        self._moment = moment
        self.live: Callable[[], Stamp | None] = sink.live
        self.prune = sink.prune
        self.close = sink.close

    def begin(self, generation: str) -> GenerationWriter:
        return InterruptedWriter(self._sink.begin(generation), self._moment)


class InterruptedWriter:
    """The writer of it."""

    def __init__(self, writer: GenerationWriter, moment: str) -> None:
        self._writer = writer
        self._moment = moment
        self.discard = writer.discard
        self.held = writer.held

    def add(self, kind: str, documents: Iterable[object]) -> int:
        added = self._writer.add(kind, documents)
        self._reach("add")
        return added

    def seal(self, stamp: Stamp) -> None:
        self._writer.seal(stamp)
        self._reach("seal")

    def count(self, kind: str) -> int:
        self._reach("count")
        return self._writer.count(kind)

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        self._reach("read")
        return self._writer.read(kind, ids)

    def publish(self) -> None:
        self._reach("before publish")
        self._writer.publish()
        self._reach("after publish")

    def _reach(self, moment: str) -> None:
        if moment == self._moment:
            raise KeyboardInterrupt


class UntidySink(MemorySink):
    """Cannot remove older generations."""

    def prune(self, keep: Collection[str]) -> tuple[str, ...]:
        del keep
        raise SinkError("older generations could not be removed")


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    return write_catalogue(tmp_path / "shops.ndjson", [shop("A"), shop("B")])


@pytest.mark.rule("G1")
def test_a_build_that_is_interrupted_while_reading_writes_nothing(tmp_path: Path, catalogue: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(InterruptedSource(catalogue), EmbeddedSink(tmp_path / "index"))
    assert not (tmp_path / "index").exists()


@pytest.mark.rule("G1")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_build_that_is_interrupted_while_writing_leaves_the_live_generation_and_nothing_else(
    tmp_path: Path, catalogue: Path, moment: str
) -> None:
    root = tmp_path / "index"
    live = build_into(EmbeddedSink(root), catalogue).stamp
    with pytest.raises(KeyboardInterrupt):
        build_into(InterruptedSink(EmbeddedSink(root), moment), catalogue)
    assert EmbeddedSink(root).live() == live
    assert [kept.name for kept in (root / "generations").iterdir()] == [live.generation]


@pytest.mark.rule("G1")
def test_a_generation_that_is_live_is_kept_though_its_publisher_was_interrupted(
    tmp_path: Path, catalogue: Path
) -> None:
    root = tmp_path / "index"
    before = build_into(EmbeddedSink(root), catalogue).stamp
    with pytest.raises(KeyboardInterrupt):
        build_into(InterruptedSink(EmbeddedSink(root), "after publish"), catalogue)
    live = EmbeddedSink(root).live()
    assert live is not None
    assert live.generation > before.generation
    assert {kept.name for kept in (root / "generations").iterdir()} == {before.generation, live.generation}


@pytest.mark.rule("G1")
def test_older_generations_that_can_not_be_removed_are_a_note_and_no_failure(catalogue: Path) -> None:
    sink = UntidySink()
    summary = build_into(sink, catalogue)
    assert (sink.live(), summary.removed) == (summary.stamp, ())
    assert summary.notes == ("published, but older generations could not be removed; the next build tries again",)
