"""A build that is interrupted, as by Ctrl-C, leaves the live generation as it was, and nothing of its own."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.jobs.build import build
from indexer.progress import Advance
from indexer.records.problems import ProblemLog
from indexer.sinks.embedded.generation import EmbeddedWriter
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import NumberedRecord
from indexer.state.state import States
from tests.support.catalogues import build_into, shop, write_catalogue

# Before or after which method of the embedded sink or its writer.
STEPS: Final[Mapping[str, tuple[type, str]]] = {
    "after add": (EmbeddedWriter, "add"),
    "after seal": (EmbeddedWriter, "seal"),
    "before count": (EmbeddedWriter, "count"),
    "before read": (EmbeddedWriter, "read"),
    "before edit": (EmbeddedSink, "edit"),
    "before publish": (EmbeddedSink, "publish"),
    "after publish": (EmbeddedSink, "publish"),
    "before retire": (EmbeddedSink, "retire"),
}
PUBLISHED: Final = ("after publish", "before retire")


def interrupt_at(step: str, job: Callable[[], object]) -> None:
    owner, name = STEPS[step]
    whole = getattr(owner, name)

    def interrupt(*arguments: Any, **named: Any) -> None:  # noqa: ANN401 - as the method takes
        if step.startswith("after"):
            whole(*arguments, **named)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            job()


class InterruptedSource(NdjsonCatalogue):
    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        yield next(super().records(kind, problems, advance))
        raise KeyboardInterrupt


class UntidySink(EmbeddedSink):
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
@pytest.mark.parametrize("step", [step for step in STEPS if step not in PUBLISHED])
def test_a_build_that_is_interrupted_while_writing_leaves_the_live_generation_its_state_and_nothing_else(
    tmp_path: Path, catalogue: Path, step: str
) -> None:
    root = tmp_path / "index"
    sink = EmbeddedSink(root)
    states = States(tmp_path / "state", sink.location)
    live = build(NdjsonCatalogue(catalogue), sink, states).stamp
    interrupt_at(step, lambda: build(NdjsonCatalogue(catalogue), sink, states))
    assert EmbeddedSink(root).live() == live
    assert [left.name for left in (root / "generations").iterdir()] == [live.generation]
    assert sorted(path.name for path in states.directory.iterdir()) == sorted([f"{live.generation}.sqlite", "place"])
    again = build(NdjsonCatalogue(catalogue), sink, states).stamp
    assert (sink.live(), states.has(again.generation)) == (again, True)


@pytest.mark.rule("G1")
@pytest.mark.parametrize("step", PUBLISHED)
def test_a_generation_that_is_live_is_retained_though_its_publisher_was_interrupted(
    tmp_path: Path, catalogue: Path, step: str
) -> None:
    root = tmp_path / "index"
    before = build_into(EmbeddedSink(root), catalogue).stamp
    interrupt_at(step, lambda: build_into(EmbeddedSink(root), catalogue))
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
