"""State files: their owner's alone, whole or refused with advice, and each is of one generation of one index."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from indexer.jobs.build import build
from indexer.progress import Advance
from indexer.records.problems import ProblemLog
from indexer.records.shop import ShopRecord
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import NumberedRecord
from indexer.state.state import State, StateError, States
from tests.support.catalogues import shop, write_catalogue

OLDER: Final = "20310506t070809000010-0a1b2c"
NEWER: Final = "20310507t070809000010-0a1b2c"
CANARY: Final = "zqcanaryzq"
ADVICE: Final = "build again to create it: shop-directory index build"


def _sealed(path: Path) -> Path:
    """A state of one hidden shop, at a position."""
    with State.create(path) as state:
        state.rows.put("shops", ShopRecord.model_validate(shop(CANARY, id="s1", visibility="under_review")), 1)
        state.index()
        state.public.settle()
        state.position = "p-1"
        state.seal()
    return path


def _modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}


@pytest.mark.rule("V1.silent", "G3")
def test_a_state_and_all_its_files_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    path = _sealed(tmp_path / "deeper" / "states" / "a.sqlite")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with State.open(path) as state:
        with state.transaction():
            state.position = "p-2"
        assert _modes(path.parent) == {"a.sqlite": 0o600, "a.sqlite-shm": 0o600, "a.sqlite-wal": 0o600}
    assert _modes(path.parent) == {"a.sqlite": 0o600}
    assert CANARY.encode() in path.read_bytes()


@pytest.mark.rule("V1.silent")
def test_a_directory_of_states_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    directory = tmp_path / "states"
    directory.mkdir(mode=0o755)
    States(directory, "here")
    assert directory.stat().st_mode & 0o777 == 0o700


class WatchedCatalogue(NdjsonCatalogue):
    """Looks at what there is while it is being read."""

    def watch(self, directory: Path) -> "WatchedCatalogue":
        self._watched = directory
        self.seen: dict[str, int] = {}
        return self

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        for read in super().records(kind, problems, advance):
            there = (self._watched, *self._watched.rglob("*"))
            self.seen |= {path.suffix or path.name[:14]: path.stat().st_mode & 0o777 for path in there[1:]}
            yield read


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize("bad", [0, 1])
def test_a_build_without_a_directory_of_states_makes_a_private_one_and_removes_it_even_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    catalogue = write_catalogue(tmp_path / "shops.ndjson", [shop("A"), shop("B"), *[{"id": "bad"}] * bad])
    source = WatchedCatalogue(catalogue).watch(temporary)
    if bad:
        with pytest.raises(Exception, match="1 bad records"):
            build(source, EmbeddedSink(tmp_path / "index"))
    else:
        build(source, EmbeddedSink(tmp_path / "index"))
    assert source.seen.pop("place") is not None
    assert source.seen == {"shop-directory": 0o700, "state": 0o700, ".sqlite": 0o600}
    assert list(temporary.iterdir()) == []


@pytest.mark.rule("G3")
@pytest.mark.parametrize("name", ["with space", "50%25", "a#b", "a?mode=memory", "ü"])
def test_a_state_lies_where_its_path_says_whatever_the_path_is_called(tmp_path: Path, name: str) -> None:
    path = _sealed(tmp_path / name / "a.sqlite")
    assert [found.relative_to(tmp_path) for found in tmp_path.rglob("*") if found.is_file()] == [
        path.relative_to(tmp_path)
    ]
    with State.open(path) as state:
        assert state.position == "p-1"


@pytest.mark.rule("G3")
def test_a_change_and_the_position_are_saved_together_or_not_at_all(tmp_path: Path) -> None:
    path = _sealed(tmp_path / "a.sqlite")

    def fail_midway(state: State) -> None:
        with state.transaction():
            state.pending.add("shops", "s1")
            state.position = "p-2"
            raise KeyboardInterrupt

    with State.open(path) as state:
        with pytest.raises(KeyboardInterrupt):
            fail_midway(state)
        assert (state.position, state.pending.count()) == ("p-1", 0)
        with state.transaction():
            state.pending.add("shops", "s1")
            state.position = "p-3"
    with State.open(path) as state:
        assert (state.position, state.pending.count()) == ("p-3", 1)


def _unseal(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM meta WHERE name = 'sealed'")
    db.close()


def _of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '0' WHERE name = 'version'")
    db.close()


DAMAGED: Final = f"is damaged: {ADVICE} --fresh-state$"
UNUSABLE: Final = f"is unfinished or of another version: {ADVICE} --fresh-state$"
DAMAGES: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "lost": (Path.unlink, f"the state of the live generation is lost .*: {ADVICE}$"),
    "overwritten": (lambda path: path.write_bytes(b"\0garbage" * 999), DAMAGED),
    "emptied": (lambda path: path.write_bytes(b""), DAMAGED),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:5_000]), DAMAGED),
    "unsealed": (_unseal, UNUSABLE),
    "of another version": (_of_another_version, UNUSABLE),
}


@pytest.mark.rule("G3")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_that_cannot_be_used_is_refused_with_advice(tmp_path: Path, damage: str) -> None:
    inflict, message = DAMAGES[damage]
    path = _sealed(tmp_path / "a.sqlite")
    inflict(path)
    with pytest.raises(StateError, match=message) as error:
        State.open(path)
    assert str(path) in str(error.value)


@pytest.mark.rule("G3")
@pytest.mark.parametrize("damage", ["overwritten", "emptied", "cut short", "unsealed", "of another version"])
def test_a_build_does_not_forget_by_itself_what_a_damaged_state_remembered(tmp_path: Path, damage: str) -> None:
    sink = EmbeddedSink(tmp_path / "index")
    states = States(tmp_path / "state", sink.location)
    source = NdjsonCatalogue(write_catalogue(tmp_path / "shops.ndjson", [shop("A")]))
    live = build(source, sink, states).stamp
    DAMAGES[damage][0](states.path(live.generation))
    with pytest.raises(StateError, match=r"--fresh-state"):
        build(source, sink, states)
    assert sink.live() == live
    assert [path.name for path in (tmp_path / "index" / "generations").iterdir()] == [live.generation]


def test_a_new_state_is_never_put_over_another_one(tmp_path: Path) -> None:
    path = _sealed(tmp_path / "a.sqlite")
    with pytest.raises(StateError, match="cannot be created"):
        State.create(path)
    with State.open(path) as state:
        assert state.position == "p-1"


def test_a_directory_of_states_is_for_one_index(tmp_path: Path) -> None:
    States(tmp_path / "states", "the first index")
    States(tmp_path / "states", "the first index")
    with pytest.raises(StateError, match=r"belongs to the first index: name another one for the second index"):
        States(tmp_path / "states", "the second index")


def test_a_directory_of_states_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "states").write_text("a file")
    with pytest.raises(StateError, match="cannot be used: File exists"):
        States(tmp_path / "states", "here")


def test_states_are_named_like_their_generations_and_pruned_with_them(tmp_path: Path) -> None:
    states = States(tmp_path / "states", "here")
    for generation in (OLDER, NEWER):
        _sealed(states.path(generation))
        for suffix in ("-wal", "-shm", "-journal"):
            Path(f"{states.path(generation)}{suffix}").touch()
    states.dead_letters.touch()
    (states.directory / "notes.sqlite").touch()
    assert (states.has(OLDER), states.prune({NEWER}), states.has(OLDER)) == (True, (OLDER,), False)
    retained = [states.path(NEWER).name + suffix for suffix in ("", "-journal", "-shm", "-wal")]
    assert sorted(path.name for path in states.directory.iterdir()) == sorted(
        [*retained, "dead-letters.ndjson", "notes.sqlite", "place"]
    )
    assert states.prune({NEWER}) == ()
