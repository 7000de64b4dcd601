"""A build that is interrupted leaves the live generation as it was, and nothing of its own.

The sinks here pass everything on to the embedded one and are interrupted at one step, as by Ctrl-C.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.generations import Stamp
from indexer.jobs.build import build
from indexer.progress import Advance
from indexer.records.problems import ProblemLog
from indexer.sinks.embedded.generation import EmbeddedEditor, EmbeddedWriter
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import NumberedRecord
from indexer.state.state import States
from tests.support.catalogues import build_into, shop, write_catalogue

STEPS: Final = ("add", "seal", "count", "read", "edit", "before publish")


class InterruptedSource(NdjsonCatalogue):
    """Is interrupted after its first shop."""

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        yield next(super().records(kind, problems, advance))
        raise KeyboardInterrupt


class InterruptedSink(EmbeddedSink):
    """Is interrupted at one step of the writing."""

    def __init__(self, root: Path, step: str) -> None:
        super().__init__(root)
        self._step = step

    def begin(self, generation: str) -> EmbeddedWriter:
        return InterruptedWriter(self._root, generation, super().begin(generation), self._step)

    def edit(self, generation: str) -> EmbeddedEditor:
        if self._step == "edit":
            raise KeyboardInterrupt
        return super().edit(generation)

    def retire(self, generation: str, at: datetime) -> None:
        if self._step == "retire":
            raise KeyboardInterrupt
        super().retire(generation, at)


class InterruptedWriter(EmbeddedWriter):
    """The writer of it."""

    def __init__(self, root: Path, generation: str, writer: EmbeddedWriter, step: str) -> None:
        super().__init__(root, generation, self._publish)
        self._writer = writer
        self._step = step

    def add(self, kind: str, documents: Iterable[object]) -> int:
        added = super().add(kind, documents)
        self._reach("add")
        return added

    def seal(self, stamp: Stamp) -> Stamp:
        sealed = super().seal(stamp)
        self._reach("seal")
        return sealed

    def count(self, kind: str) -> int:
        self._reach("count")
        return super().count(kind)

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        self._reach("read")
        return super().read(kind, ids)

    def _publish(self) -> None:
        self._reach("before publish")
        self._writer.publish()
        self._reach("after publish")

    def _reach(self, step: str) -> None:
        if step == self._step:
            raise KeyboardInterrupt


class UntidySink(EmbeddedSink):
    """Cannot remove older generations."""

    def drop(self, generation: str) -> None:
        raise SinkError(f"generation {generation} could not be removed: TheReason")


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    return write_catalogue(tmp_path / "shops.ndjson", [shop("A"), shop("B")])


@pytest.mark.rule("G1")
def test_a_build_that_is_interrupted_while_reading_writes_nothing(tmp_path: Path, catalogue: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        build(InterruptedSource(catalogue), EmbeddedSink(tmp_path / "index"))
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["indexer.lock"]


@pytest.mark.rule("G1")
@pytest.mark.parametrize("step", STEPS)
def test_a_build_that_is_interrupted_while_writing_leaves_the_live_generation_its_state_and_nothing_else(
    tmp_path: Path, catalogue: Path, step: str
) -> None:
    root = tmp_path / "index"
    sink = EmbeddedSink(root)
    states = States(tmp_path / "state", sink.location)
    live = build(NdjsonCatalogue(catalogue), sink, states).stamp
    with pytest.raises(KeyboardInterrupt):
        build(NdjsonCatalogue(catalogue), InterruptedSink(root, step), states)
    assert EmbeddedSink(root).live() == live
    assert [left.name for left in (root / "generations").iterdir()] == [live.generation]
    assert sorted(path.name for path in states.directory.iterdir()) == sorted([f"{live.generation}.sqlite", "place"])
    again = build(NdjsonCatalogue(catalogue), sink, states).stamp
    assert (sink.live(), states.has(again.generation)) == (again, True)


@pytest.mark.rule("G1")
@pytest.mark.parametrize("step", ["after publish", "retire"])
def test_a_generation_that_is_live_is_retained_though_its_publisher_was_interrupted(
    tmp_path: Path, catalogue: Path, step: str
) -> None:
    root = tmp_path / "index"
    before = build_into(EmbeddedSink(root), catalogue).stamp
    with pytest.raises(KeyboardInterrupt):
        build_into(InterruptedSink(root, step), catalogue)
    live = EmbeddedSink(root).live()
    assert live is not None
    assert live.generation > before.generation
    assert {left.name for left in (root / "generations").iterdir()} == {before.generation, live.generation}


@pytest.mark.rule("G1", "G2")
def test_older_generations_that_can_not_be_removed_are_a_note_and_no_failure(tmp_path: Path, catalogue: Path) -> None:
    sink = UntidySink(tmp_path / "index")
    hours = (datetime(2031, 5, 6, hour, tzinfo=UTC) for hour in range(3))
    summaries = [build(NdjsonCatalogue(catalogue), sink, clock=repeat(hour).__next__) for hour in hours]
    oldest, _, last = summaries
    assert (sink.live(), last.published, last.removed) == (last.stamp, True, ())
    reason = f"generation {oldest.stamp.generation} could not be removed: TheReason"
    note = f"published, but older generations could not be removed ({reason}); the next job tries again"
    assert [summary.notes for summary in summaries] == [(), (), (note,)]
