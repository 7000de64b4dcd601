"""A full disk is not taken for damage: exit code 3, advice to free space, and nothing is to be forgotten or rebuilt.

SQLite's own limit of a file's pages is as real as a full disk: the same write fails with the same code.
"""

import errno
import sqlite3
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from indexer.__main__ import index
from indexer.disk_space import ADVICE, DiskFullError, raise_if_full
from indexer.jobs.build import build
from indexer.jobs.following import Following, FollowOptions
from indexer.sinks import generation_typeahead
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.failures import SinkError
from indexer.sources.changes import ChangeFile
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.state import state as state_module
from indexer.state.remembered import take_over
from indexer.state.state import SCHEMA, State, StateError, States
from tests.support.catalogues import shop, upsert, write_catalogue, write_catalogue_directory
from tests.support.memory_sink import MemorySink

MANY: Final = [shop(f"Shop {number}", id=f"s{number}", source="x" * 2_000) for number in range(100)]
_ENOUGH: Final = 1_000_000


def _limit(state: State, pages: int) -> None:
    """Leave the state no more than so many pages; those that it has stay."""
    state.connection.execute(f"PRAGMA max_page_count = {pages}")


def _system_error() -> OSError:
    with pytest.raises(OSError, match="No space left") as raised, Path("/dev/full").open("wb", buffering=0) as full:
        full.write(b"x")
    return raised.value


def _sqlite_error() -> sqlite3.Error:
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA max_page_count = 2")
    with pytest.raises(sqlite3.OperationalError) as raised:
        database.execute("CREATE TABLE a AS SELECT randomblob(100000) AS b")
    database.close()
    return raised.value


def _caused_by(cause: Exception) -> SinkError:
    error = SinkError("the shops could not be written")
    error.__cause__ = cause
    return error


def test_a_full_disk_is_known_from_the_system_from_sqlite_and_from_an_engines_text() -> None:
    text = ValueError("An IO error occurred: 'No space left on device (os error 28)'")
    for error in (_system_error(), _sqlite_error(), text, OSError(errno.EDQUOT, "Disk quota exceeded")):
        for full in (error, _caused_by(error)):
            with pytest.raises(DiskFullError):
                raise_if_full(full)
    damage = sqlite3.DatabaseError("file is not a database")
    for other in (damage, FileNotFoundError(errno.ENOENT, "No such file"), ValueError("os error 2"), StateError("x")):
        raise_if_full(other)
        raise_if_full(_caused_by(other))


@pytest.mark.rule("G3")
def test_taking_over_a_former_state_without_space_advises_to_free_some_not_to_forget_it(tmp_path: Path) -> None:
    sink = MemorySink()
    states = States(tmp_path / "state", sink.location)
    catalogue = write_catalogue_directory(tmp_path / "catalogue", shops=[shop("Shop", id="s")])
    write_catalogue(catalogue / "changes.ndjson", [upsert("shops", record, 5) for record in MANY])
    live = build(NdjsonCatalogue(catalogue), sink, states).stamp.generation
    with State.create(tmp_path / "fresh.sqlite") as fresh:
        _limit(fresh, 20)
        with pytest.raises(DiskFullError) as full:
            take_over(fresh.connection, states.path(live))
    assert str(full.value) == ADVICE


@pytest.mark.rule("G2", "G3")
def test_a_build_without_space_is_exit_code_3_in_one_sentence_and_leaves_the_live_generation_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_catalogue(tmp_path / "shops.ndjson", MANY)
    command = ["build", "--data-dir", str(tmp_path / "index"), "--catalogue", str(path)]
    environment = dict.fromkeys(("SHOP_DIRECTORY_ENGINE", "SHOP_DIRECTORY_STATE_DIR", "SHOP_DIRECTORY_DATA_DIR"))
    assert CliRunner().invoke(index, command, env=environment).exit_code == 0
    live = EmbeddedSink(tmp_path / "index").live()
    states = sorted(tmp_path.rglob("*.sqlite"))
    with monkeypatch.context() as limited:
        limited.setattr(state_module, "SCHEMA", f"{SCHEMA} PRAGMA max_page_count = 30;")
        done = CliRunner().invoke(index, command, env=environment)
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == (
        "Nothing was published: a disk is full: free space where the index and the state are stored, and try again."
    )
    assert EmbeddedSink(tmp_path / "index").live() == live
    assert sorted(tmp_path.rglob("*.sqlite")) == states
    assert CliRunner().invoke(index, command, env=environment).exit_code == 0


class _Filling(States):
    opened: State | None = None

    def open(self, generation: str) -> State:
        self.opened = super().open(generation)
        _limit(self.opened, 1)
        return self.opened


class _FreeingStop(threading.Event):
    """Frees the space at the first pause, and ends the following at the next one."""

    def __init__(self, states: _Filling) -> None:
        super().__init__()
        self.states = states
        self.freed = False

    def wait(self, timeout: float | None = None) -> bool:
        assert self.states.opened is not None
        if self.freed:
            self.set()
        _limit(self.states.opened, _ENOUGH)
        self.freed = True
        return super().wait(0 if timeout is None else min(timeout, 0.01))


def _followed(tmp_path: Path, **options: Any) -> tuple[Following, _Filling, MemorySink]:  # noqa: ANN401 - options
    sink = MemorySink()
    states = _Filling(tmp_path / "state", sink.location)
    build(NdjsonCatalogue(write_catalogue(tmp_path / "shops.ndjson", MANY)), sink, states)
    renamed = ({**record, "name": record["name"] + " renamed" + "x" * 200} for record in MANY)
    changes = write_catalogue(tmp_path / "changes.ndjson", [upsert("shops", record, 5) for record in renamed])
    return Following(sink, states, ChangeFile(changes), FollowOptions(interval=0.01, **options)), states, sink


@pytest.mark.rule("G3")
def test_following_without_space_tries_again_and_loses_no_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    following, states, sink = _followed(tmp_path)
    summary = following.run(_FreeingStop(states))
    assert (summary.failures, summary.changes.applied) == (1, len(MANY))
    assert {found.name.partition("x")[0][-8:] for found in sink.documents["shops"]} == {" renamed"}
    assert [record.getMessage() for record in caplog.records if "retried" in record.getMessage()] == [
        f"following failed and is retried in 0 s: {ADVICE}"
    ]


def test_a_build_that_needs_more_space_than_is_free_ends_before_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = write_catalogue(tmp_path / "shops.ndjson", [shop("Kestrel"), shop("Wren")])
    sink = EmbeddedSink(tmp_path / "index")
    monkeypatch.setattr(generation_typeahead, "_SHOP_BYTES", 10**15)
    with pytest.raises(
        DiskFullError, match=r"needs some 5,000,000.0 GB in .*index at its peak, of [\d,.]+ GB free: free"
    ):
        build(NdjsonCatalogue(catalogue), sink)
    assert (sink.live(), sink.generations()) == (None, ())


def test_a_large_build_reports_the_space_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = write_catalogue(tmp_path / "shops.ndjson", [shop("Kestrel"), shop("Wren")])
    build(NdjsonCatalogue(catalogue), EmbeddedSink(tmp_path / "index"))
    assert "at its peak" not in capsys.readouterr().err
    monkeypatch.setattr(generation_typeahead, "_SHOP_BYTES", 200_000_000)
    build(NdjsonCatalogue(catalogue), EmbeddedSink(tmp_path / "index"))
    assert "the build needs some 1.0 GB in" in capsys.readouterr().err


@pytest.mark.parametrize(("shops", "millions"), [(2, 5), (10, 25), (30, 75), (60, 108)])
def test_the_space_of_a_typeahead_is_that_of_its_runs_and_of_two_merged_segments(shops: int, millions: int) -> None:
    assert generation_typeahead.needed_space(shops * 10**6) == 1_600 * millions * 10**6
