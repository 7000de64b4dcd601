"""What is retained of old generations, and what the remains of killed jobs become (G2)."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Final

import pytest

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import Stamp, first_stamp, new_generation
from indexer.jobs.retention import GRACE, is_due, prune, remove_unfinished
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.protocol import Generation, Role
from indexer.state.state import States

pytestmark = pytest.mark.rule("G2")

NOON: Final = datetime(2031, 5, 6, 12, tzinfo=UTC)
NAME: Final = new_generation(NOON)


class Index:
    def __init__(self, folder: Path) -> None:
        self.sink = EmbeddedSink(folder / "index")
        self.states = States(folder / "state", self.sink.location)
        self._births = self._hours()

    def sealed(self) -> Stamp:
        born = next(self._births)
        stamp = first_stamp(new_generation(born), born)
        generation = self.sink.begin(stamp.generation)
        for kind in DOCUMENTS:
            generation.add(kind, ())
        generation.seal(stamp)
        self.states.create(stamp.generation).close()
        return stamp

    def published(self, *, retire: bool = True) -> str:
        """One that is live; the one before was live until now, unless its successor's job did not get to say so."""
        stamp, before = self.sealed(), self.sink.live()
        self.sink.publish(stamp.generation, None if before is None else before.generation)
        if before is not None and retire:
            self.sink.retire(before.generation, NOON)
        return stamp.generation

    def roles(self) -> dict[str, Role]:
        return {found.name: found.role for found in self.sink.generations()}

    def state_files(self) -> list[str]:
        return sorted(path.stem for path in self.states.directory.glob("*.sqlite"))

    @staticmethod
    def _hours() -> Iterator[datetime]:
        for hours in range(100):
            yield NOON - timedelta(hours=100 - hours)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path)


@pytest.mark.parametrize(
    ("role", "retired", "due", "due_without_previous"),
    [
        (Role.LIVE, None, False, False),
        (Role.LIVE, timedelta(days=9), False, False),
        (Role.PREVIOUS, timedelta(days=9), False, True),
        (Role.PREVIOUS, timedelta(seconds=59), False, False),
        (Role.PREVIOUS, None, False, False),
        (Role.RETIRED, timedelta(seconds=59), False, False),
        (Role.RETIRED, timedelta(seconds=60), True, True),
        (Role.RETIRED, timedelta(seconds=-60), False, False),
        (Role.UNFINISHED, None, False, False),
    ],
)
def test_what_has_not_been_live_for_a_minute_is_due_but_for_the_live_one_and_the_one_before(
    role: Role, retired: timedelta | None, *, due: bool, due_without_previous: bool
) -> None:
    found = Generation(NAME, role, None, None if retired is None else NOON - retired)
    assert timedelta(seconds=60) == GRACE
    for now in (NOON, NOON.astimezone(timezone(timedelta(hours=9)))):
        assert is_due(found, now, keep_previous=True) is due
        assert is_due(found, now, keep_previous=False) is due_without_previous


def test_pruning_removes_what_is_due_with_its_state_and_nothing_else(index: Index) -> None:
    oldest, older, previous, live = (index.published() for _ in range(4))
    unfinished = index.sealed().generation
    assert index.roles() == {
        oldest: Role.RETIRED,
        older: Role.RETIRED,
        previous: Role.PREVIOUS,
        live: Role.LIVE,
        unfinished: Role.UNFINISHED,
    }
    assert prune(index.sink, index.states, NOON + timedelta(seconds=59)) == ()
    assert len(index.roles()) == 5
    index.sink.retire(older, NOON + timedelta(seconds=1))
    assert prune(index.sink, index.states, NOON + timedelta(seconds=60)) == (oldest,)
    assert prune(index.sink, index.states, NOON + timedelta(days=1)) == (older,)
    assert index.roles() == {previous: Role.PREVIOUS, live: Role.LIVE, unfinished: Role.UNFINISHED}
    assert index.state_files() == [previous, live, unfinished]
    assert prune(index.sink, None, NOON + timedelta(days=1)) == ()


def test_the_remains_of_killed_builds_go_with_their_states_and_all_others_stay(index: Index) -> None:
    retired, previous, live = (index.published() for _ in range(3))
    remains = tuple(index.sealed().generation for _ in range(2))
    begun = new_generation(NOON)
    index.sink.begin(begun)
    lonely = new_generation(NOON)
    index.states.create(lonely).close()
    assert sorted(remove_unfinished(index.sink, index.states, NOON)) == sorted([*remains, begun])
    assert index.roles() == {retired: Role.RETIRED, previous: Role.PREVIOUS, live: Role.LIVE}
    assert index.state_files() == [retired, previous, live]
    assert remove_unfinished(index.sink, None, NOON) == ()


def test_a_previous_generation_whose_successors_job_was_killed_is_retained_a_minute_from_when_that_is_found(
    index: Index,
) -> None:
    previous, live = index.published(), index.published(retire=False)
    later = NOON + timedelta(days=1)
    assert remove_unfinished(index.sink, index.states, later) == ()
    assert [found.retired_at for found in index.sink.generations()] == [later, None]
    latest = index.published()
    assert remove_unfinished(index.sink, index.states, later) == ()
    assert prune(index.sink, index.states, later + timedelta(seconds=59)) == ()
    assert prune(index.sink, index.states, later + timedelta(seconds=60)) == (previous,)
    assert index.roles() == {live: Role.PREVIOUS, latest: Role.LIVE}


def test_a_mark_that_is_there_is_left_as_it_is(index: Index) -> None:
    index.published()
    index.published()
    remove_unfinished(index.sink, index.states, NOON + timedelta(days=1))
    assert [found.retired_at for found in index.sink.generations()] == [NOON, None]


def test_files_that_a_killed_build_left_with_the_states_are_removed_after_a_day(index: Index) -> None:
    for name, age in (("reread-old", timedelta(days=2)), ("reread-young", timedelta(hours=2))):
        left = index.states.directory / name
        left.mkdir()
        (left / "state.sqlite").touch()
        at = (NOON - age).timestamp()
        os.utime(left, (at, at))
    remove_unfinished(index.sink, index.states, NOON)
    assert [path.name for path in index.states.directory.glob("reread-*")] == ["reread-young"]
