"""Every file of a rotation that is newer than the one that was read last is read, and one that is gone is reported."""

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from index_mappings.generations import MissingChanges
from indexer.sources.changes import ChangeFile
from indexer.sources.rotation import rotated_files

NAMES = {
    "numbers": ["changes.ndjson.1", "changes.ndjson.2", "changes.ndjson.3"],
    "many numbers": ["changes.ndjson.9", "changes.ndjson.10", "changes.ndjson.11"],
    "dates": ["changes.ndjson-20261126", "changes.ndjson-20261125", "changes.ndjson-20261124"],
    "dates with times": [f"changes.ndjson.2026-11-{hour}" for hour in ("26_03", "26_02", "25_23")],
    "days before months": ["changes.ndjson-01-12-2026", "changes.ndjson-30-11-2026", "changes.ndjson-29-11-2026"],
    "seconds": ["changes.ndjson-1732416002", "changes.ndjson-1732416001", "changes.ndjson-1732416000"],
}
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def _delete(key: str) -> bytes:
    return json.dumps({"op": "delete", "type": "shops", "key": key, "version": 1}).encode() + b"\n"


class Log:
    """A log whose files are a second apart, and which is rotated as logrotate does."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "changes.ndjson"
        self._seconds = 1_795_000_000

    def write(self, *keys: str) -> None:
        with self.path.open("ab") as file:
            file.writelines(map(_delete, keys))
        self._touch(self.path)

    def rotate(self, names: list[str], *, compression: str = "", copy: bool = False) -> None:
        """Rename each file to the next older name, or `copy` and truncate the newest; older ones are compressed."""
        folder = self.path.parent
        for newer, older in reversed(list(pairwise(names))):
            for suffix in ("", compression):
                if (found := folder / f"{newer}{suffix}").exists():
                    found.rename(folder / f"{older}{suffix}")
        newest = folder / names[0]
        if copy:
            newest.write_bytes(self.path.read_bytes())
            self._touch(newest)
            self.path.write_bytes(b"")
        else:
            self.path.rename(newest)
            self.path.touch()
        self._touch(self.path)
        if compression:
            modified = newest.stat().st_mtime_ns
            packed = newest.with_name(f"{newest.name}{compression}")
            packed.write_bytes(COMPRESSED[compression](newest.read_bytes()))
            newest.unlink()
            os.utime(packed, ns=(modified, modified))

    def date(self, names: list[str]) -> None:
        """Rotate to the next of several dated names."""
        used = [name for name in names if (self.path.parent / name).exists()]
        self.rotate([names[len(names) - 1 - len(used)]])

    def _touch(self, path: Path) -> None:
        self._seconds += 1
        os.utime(path, (self._seconds, self._seconds))

    def read(self, position: str | None = None, most: int = 100) -> tuple[list[str], str | None, MissingChanges | None]:
        """What a new process reads, one line after the other."""
        source, keys, missing = ChangeFile(self.path), list[str](), None
        while len(keys) < most:
            batch = source.read(position, 1)
            missing, position = batch.missing or missing, batch.position
            if not batch.changes and not batch.more:
                break
            keys += [change.key for change in batch.changes]
        source.close()
        return keys, position, missing


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def _rotate(log: Log, form: str, compression: str = "") -> None:
    if "numbers" in form:
        log.rotate(["changes.ndjson.1", "changes.ndjson.2", "changes.ndjson.3"], compression=compression)
    else:
        log.date(NAMES[form])


def _rotated(log: Log, *written: str, form: str = "numbers", compression: str = "") -> str | None:
    """The position between a and b, before rotations after which these keys were written."""
    log.write("a", "b")
    _, position, _ = log.read(most=1)
    for keys in written:
        _rotate(log, form, compression)
        log.write(*keys)
    return position


@pytest.mark.rule("G3")
@pytest.mark.parametrize("form", sorted(NAMES))
def test_names_of_a_rotation_are_in_the_order_of_their_age(tmp_path: Path, form: str) -> None:
    """Numbers and years say it whatever the times are; in other forms the times do."""
    path = tmp_path / "changes.ndjson"
    for age, name in enumerate(NAMES[form]):
        time = 1_795_000_000 + (-age if form == "days before months" else age)
        for made in (f"{name}.gz", name) if age == 1 else (name,):  # it is being compressed
            (tmp_path / made).write_bytes(b"")
            os.utime(tmp_path / made, (time, time))
    (tmp_path / "changes.ndjson.tmp1234").touch()
    assert [one.path.name for one in rotated_files(path)] == NAMES[form][::-1]


@pytest.mark.rule("G3")
@pytest.mark.parametrize("form", ["numbers", "dates", "dates with times", "days before months", "seconds"])
def test_all_files_of_two_rotations_are_read_in_order(log: Log, form: str) -> None:
    keys, position, missing = log.read(_rotated(log, "cd", "e", form=form))
    assert (keys, missing) == (["b", "c", "d", "e"], None)
    assert log.read(position) == ([], position, None)


@pytest.mark.rule("G3")
@pytest.mark.parametrize("compression", sorted(COMPRESSED))
def test_compressed_files_of_a_rotation_are_read_too(log: Log, compression: str) -> None:
    position = _rotated(log, *"cde", compression=compression)
    assert sorted(path.suffix for path in log.path.parent.iterdir()) == sorted([compression] * 3 + [".ndjson"])
    keys, position, missing = log.read(position)
    assert (keys, missing) == (["b", "c", "d", "e"], None)
    assert log.read(position) == ([], position, None)


@pytest.mark.rule("G3")
@pytest.mark.parametrize("compression", ["", ".gz"])
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_a_file_that_was_empty_or_not_there_is_read_after_it_was_filled_and_rotated_twice(
    log: Log, compression: str, *, there: bool, older: bool
) -> None:
    if older:
        log.write("of long ago")
        _rotate(log, "numbers", compression)
    if there:
        log.write()
    else:
        log.path.unlink(missing_ok=True)
    keys, position, _ = log.read()
    log.write("a")
    _rotate(log, "numbers", compression)
    log.write("b")
    _rotate(log, "numbers", compression)
    assert (keys, log.read(position)[::2]) == ([], (["a", "b"], None))
    log.write("c")
    assert log.read(position)[::2] == (["a", "b", "c"], None)


@pytest.mark.rule("G3")
def test_a_file_that_is_copied_and_truncated_twice_is_read_whole(log: Log) -> None:
    log.write("a", "b")
    _, position, _ = log.read(most=1)
    for key in "cd":
        log.rotate(NAMES["numbers"], copy=True)
        log.write(key)
    assert log.read(position)[::2] == (["b", "c", "d"], None)


@pytest.mark.rule("G3")
def test_a_reader_that_goes_on_reads_files_that_were_replaced_between_two_looks(log: Log) -> None:
    log.write("a")
    source = ChangeFile(log.path)
    batch = source.read(None, 100)
    for key in "bcd":
        _rotate(log, "numbers")
        log.write(key)
    keys = []
    while (batch := source.read(batch.position, 100)).changes:
        keys += [change.key for change in batch.changes]
        assert batch.missing is None
    assert keys == ["b", "c", "d"]


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("lost", "read", "size"),
    [
        ("changes.ndjson.3", ["c", "d", "e"], len(_delete("b"))),
        ("changes.ndjson.2", ["b", "d", "e"], None),
        ("changes.ndjson.1", ["b", "c", "e"], None),
    ],
)
def test_a_file_of_the_rotation_that_is_gone_is_reported_once_and_the_others_are_read(
    log: Log, lost: str, read: list[str], size: int | None
) -> None:
    position = _rotated(log, *"cde")
    (log.path.parent / lost).unlink()
    keys, position, missing = log.read(position)
    assert (keys, missing is not None and missing.bytes) == (read, size)
    assert log.read(position) == ([], position, None)


@pytest.mark.rule("G3")
def test_a_file_that_was_empty_and_is_gone_is_reported(log: Log) -> None:
    log.write()
    _, position, _ = log.read()
    for key in "abc":
        log.write(key)
        _rotate(log, "numbers")
    (log.path.parent / "changes.ndjson.3").unlink()
    keys, _, missing = log.read(position)
    assert (keys, missing is not None and missing.bytes) == (["b", "c"], None)


@pytest.mark.rule("G3")
@pytest.mark.parametrize("damage", ["truncated", "another form"])
def test_a_compressed_file_that_can_not_be_read_is_reported_and_the_others_are_read(log: Log, damage: str) -> None:
    position = _rotated(log, *"cd", compression=".gz")
    packed = log.path.with_name("changes.ndjson.1.gz")
    if damage == "truncated":
        os.truncate(packed, packed.stat().st_size - 9)
    else:
        packed.rename(packed.with_suffix(".zst"))
    keys, position, missing = log.read(position)
    assert (keys, missing is not None and missing.bytes) == (["b", "d"], None)
    assert log.read(position) == ([], position, None)


@pytest.mark.rule("G3")
def test_what_is_missing_is_reported_until_the_reader_has_gone_on(log: Log) -> None:
    log.write("a", "b")
    _, position, _ = log.read(most=1)
    log.path.unlink()
    log.write("c")
    source = ChangeFile(log.path)
    first, again = source.read(position, 100), source.read(position, 100)
    assert (first, first.missing is not None) == (again, True)
    assert source.read(first.position, 100).missing is None
