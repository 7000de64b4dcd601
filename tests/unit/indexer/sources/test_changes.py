"""Changes from a file that grows and from a pipe: nothing is lost, nothing comes twice, producers are held up."""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.records.problems import CatalogueError
from indexer.sources.changes import ChangeFile, ChangeStream, gather
from indexer.sources.lines import BEGINNING, MAX_LINE, LineCutter
from indexer.sources.protocol import Change, ChangeBatch, ChangeSource, RefusedChange
from tests.support.catalogues import shop

NOT_THE_FORMER = (
    "changes.ndjson is not the file that was read before, and its folder does not have that one: it is "
    "read from its beginning. "
)
TOO_LONG = f"the line is longer than {MAX_LINE} bytes"


def _delete(key: str, version: int = 1) -> bytes:
    return json.dumps({"op": "delete", "type": "shops", "key": key, "version": version}).encode() + b"\n"


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def _keys(batch: ChangeBatch) -> list[tuple[str, str]]:
    return [(change.location.rpartition(":")[2], change.key) for change in batch.changes]


def _drained(source: ChangeFile, position: str | None, most: int) -> list[str]:
    """The keys of all changes after a position."""
    keys = list[str]()
    while (batch := source.read(position, most)).changes or batch.more:
        keys, position = [*keys, *(change.key for change in batch.changes)], batch.position
    return keys


def _read(path: Path, position: str | None = None, most: int = 100) -> tuple[list[tuple[str, str]], str | None, bool]:
    batch = ChangeFile(path).read(position, most)
    assert batch.refused == ()
    return _keys(batch), batch.position, batch.more


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "changes.ndjson"


@pytest.mark.rule("G3")
def test_reading_goes_on_where_it_stopped_and_a_line_without_its_end_stays_for_later(path: Path) -> None:
    source: ChangeSource = ChangeFile(path)
    path.write_bytes(_delete("a") + _delete("b") + _delete("c")[:-20])
    first = source.read(None, 100)
    assert (_keys(first), first.refused, first.more) == ([("1", "a"), ("2", "b")], (), False)
    assert _read(path, first.position) == ([], first.position, False)
    _append(path, _delete("c")[-20:-1])
    assert _read(path, first.position) == ([], first.position, False)
    _append(path, b"\n")
    changes, position, more = _read(path, first.position)
    assert (changes, more) == ([("3", "c")], False)
    assert _read(path, position) == ([], position, False)
    assert source.ended is False
    source.close()
    assert _keys(source.read(None, 100)) == [("1", "a"), ("2", "b"), ("3", "c")]


def test_no_more_than_was_asked_for_is_consumed_and_whether_more_is_there_is_reported(path: Path) -> None:
    path.write_bytes(_delete("a") + b"\n" + _delete("b") + _delete("c") + _delete("d")[:-1])
    changes, position, more = _read(path, most=2)
    assert (changes, more) == ([("1", "a"), ("3", "b")], True)
    assert _read(path, position, most=0) == ([], position, True)
    changes, position, more = _read(path, position, most=1)
    assert (changes, more) == ([("4", "c")], False)


def test_a_file_that_is_not_there_yet_is_empty_and_leaves_the_position(path: Path) -> None:
    changes, beginning, more = _read(path)
    assert (changes, more, ChangeFile(path).describe_position(beginning)) == ([], False, None)
    assert _read(path, beginning) == ([], beginning, False)
    assert _read(path, "any") == ([], "any", False)
    path.touch()
    assert _read(path, beginning) == ([], beginning, False)
    path.write_bytes(_delete("a"))
    changes, position, _ = _read(path, beginning)
    path.rename(path.with_name("changes.ndjson.1"))
    assert (changes, _read(path, position)) == ([("1", "a")], ([], position, False))


@pytest.mark.parametrize(
    "replacement",
    [
        b"",
        _delete("x"),
        _delete("x") * 3,
        _delete("a", version=2) + _delete("b") + _delete("c"),
        _delete("a") + _delete("b", version=2) + _delete("c"),
        _delete("x") * 50,
    ],
)
@pytest.mark.rule("G3")
def test_a_file_that_was_replaced_or_cut_short_is_read_from_its_beginning_and_this_is_logged_once(
    path: Path, caplog: pytest.LogCaptureFixture, replacement: bytes
) -> None:
    path.write_bytes(_delete("a") + _delete("b"))
    before = _read(path)[1]
    size = path.stat().st_size
    path.write_bytes(replacement)
    source = ChangeFile(path)
    with caplog.at_level(logging.INFO):
        again = [source.read(before, 100) for _ in range(2)]
        after = source.read(again[0].position, 100)
    whole = ChangeFile(path).read(None, 100)
    assert [batch.changes for batch in again] == [whole.changes] * 2
    assert (after.changes, after.position) == ((), again[0].position)
    assert caplog.messages == [
        (
            f"{NOT_THE_FORMER}The former file was read to its end of that time, {size} bytes;"
            " what was appended later is missing until a full build"
        )
    ]


@pytest.mark.rule("G3")
def test_what_was_not_read_of_a_file_that_is_gone_is_reported_in_bytes(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(_delete("a") + _delete("b") + _delete("c"))
    position = _read(path, most=1)[1]
    path.write_bytes(_delete("x"))
    ChangeFile(path).read(position, 100)
    unread = len(_delete("b") + _delete("c"))
    assert caplog.messages == [
        f"{NOT_THE_FORMER}{unread} bytes of the former file were not read, and are missing until a full build"
    ]


@pytest.mark.parametrize(
    ("name", "older"),
    [
        ("changes.ndjson.1", "changes.ndjson.2"),
        ("changes.ndjson-20261124", "changes.ndjson-20261123"),
        ("changes.ndjson.old", "changes.ndjson.older"),
    ],
)
@pytest.mark.rule("G3")
def test_a_file_that_is_rotated_before_it_was_read_to_its_end_is_read_to_its_end_first(
    path: Path, caplog: pytest.LogCaptureFixture, name: str, older: str
) -> None:
    path.write_bytes(_delete("a") + _delete("b") + _delete("c"))
    before = _read(path, most=1)[1]
    rotated = path.rename(path.with_name(name))
    path.with_name(older).write_bytes(_delete("x") * 9)
    source = ChangeFile(path)
    last_of_former = source.read(before, 100)
    assert _keys(last_of_former) == [("2", "b"), ("3", "c")]
    path.touch()
    assert source.read(last_of_former.position, 100).position == last_of_former.position
    _append(rotated, _delete("d"))  # by a writer that had opened it before
    path.write_bytes(_delete("e"))
    assert (source.backlog(before), source.backlog(last_of_former.position)) == (4, 2)
    changes, position, _ = _read(path, last_of_former.position)
    assert changes == [("4", "d")]
    changes, position, _ = _read(path, position)
    assert changes == [("1", "e")]
    assert (_read(path, position), source.backlog(position)) == (([], position, False), 0)
    assert caplog.messages == []


@pytest.mark.rule("G3")
def test_files_that_replace_each_other_before_they_were_read_to_their_end_are_all_read(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, position, read = ChangeFile(path), None, list[str]()
    new = path.with_name("new")
    for name in "abc":  # each replaces the former one, of which nothing remains in the folder
        new.write_bytes(b"".join(_delete(f"{name}{number}") for number in range(200)))
        new.replace(path)
        batch = source.read(position, 50)
        read, position = [*read, *(change.key for change in batch.changes)], batch.position
    assert source.backlog(position) == 450
    assert [*read, *_drained(source, position, 50)] == [f"{name}{number}" for name in "abc" for number in range(200)]
    assert caplog.messages == []


@pytest.mark.rule("G3")
def test_what_follows_a_held_position_in_a_rotated_file_is_read_from_the_beginning_on(path: Path) -> None:
    path.write_bytes(_delete("a") + _delete("b"))
    position = _read(path, most=1)[1]
    path.rename(path.with_name("changes.ndjson.1"))
    path.write_bytes(_delete("c"))
    source = ChangeFile(path)
    source.hold(position)
    first = source.read(None, 100)
    assert [_keys(first), _keys(source.read(first.position, 100))] == [[("1", "a"), ("2", "b")], [("1", "c")]]


@pytest.mark.rule("G3")
def test_files_that_replace_each_other_while_nothing_can_be_read_are_held_and_all_read(path: Path) -> None:
    source = ChangeFile(path)
    for name in "abc":
        path.with_name("new").write_bytes(_delete(name))
        path.with_name("new").replace(path)
        source.hold()
    assert _drained(source, None, 1) == ["a", "b", "c"]


@pytest.mark.rule("G3")
def test_a_last_line_without_its_end_counts_once_a_later_file_has_lines(path: Path) -> None:
    source = ChangeFile(path)
    new = path.with_name("new")
    path.write_bytes(_delete("a") + _delete("b")[:-1])
    first = source.read(None, 100)
    for content in (_delete("c")[:-1], _delete("d")[:-20], _delete("e")):
        new.write_bytes(content)
        new.replace(path)
        source.hold()
    last = source.read(first.position, 100)
    assert [_keys(first), _keys(last)] == [[("1", "a")], [("2", "b"), ("1", "c"), ("1", "e")]]
    assert [refused.raw for refused in last.refused] == [_delete("d")[:-20].decode()]
    assert source.read(last.position, 100) == ChangeBatch((), (), last.position, more=False)


def test_a_file_that_was_copied_and_continued_is_not_read_again(path: Path) -> None:
    source = ChangeFile(path)
    path.write_bytes(_delete("a") + _delete("b"))
    batch = source.read(None, 100)
    path.with_name("new").write_bytes(path.read_bytes() + _delete("c"))
    path.with_name("new").replace(path)
    assert _keys(source.read(batch.position, 100)) == [("3", "c")]


def test_more_replaced_files_than_may_be_open_are_reported(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = ChangeFile(path)
    for number in range(66):
        path.with_name("new").write_bytes(_delete(f"k{number}"))
        path.with_name("new").replace(path)
        source.read(None, 0)
    assert caplog.messages == [
        (
            "changes.ndjson was replaced 64 times before it was read to its end: one of the files, with"
            f" {len(_delete('k64'))} bytes, was not read and is missing until a full build"
        )
    ]
    source.close()


def test_a_longer_file_with_the_same_first_kibibytes_but_other_lines_is_noticed(path: Path) -> None:
    beginning = [_delete(f"a{number}") for number in range(100)]
    path.write_bytes(b"".join(beginning) + _delete("b"))
    position = _read(path, most=101)[1]
    path.write_bytes(b"".join(beginning) + _delete("c") + _delete("d"))
    assert _read(path, position, most=200)[0][-2:] == [("101", "c"), ("102", "d")]
    assert len(_read(path, position, most=200)[0]) == 102


@pytest.mark.parametrize("position", ["", "x", "{}", "\ud800", '{"after": 5}', '{"offset":-1,"line":0}', "OFFSET"])
def test_a_position_of_another_source_means_the_beginning(path: Path, position: str) -> None:
    path.write_bytes(_delete("a") + _delete("b"))
    whole = _read(path)
    beyond = json.dumps({**json.loads(whole[1] or ""), "offset": 10**30})
    assert _read(path, beyond if position == "OFFSET" else position) == whole


def test_a_line_beyond_a_mebibyte_is_refused_before_its_end_and_its_rest_passed_over_as_it_comes(path: Path) -> None:
    path.write_bytes(_delete("a") + b"x" * MAX_LINE)
    assert _read(path)[0] == [("1", "a")]
    _append(path, b"x")
    batch = ChangeFile(path).read(None, 100)
    refused = RefusedChange("changes.ndjson:2", (TOO_LONG,), "x" * BEGINNING)
    assert (_keys(batch), batch.refused, batch.more) == ([("1", "a")], (refused,), False)
    _append(path, b"x" * 3 * MAX_LINE)
    assert batch.position is not None
    changes, position, more = _read(path, batch.position)
    assert (changes, more) == ([], False)
    _append(path, b"x\n" + _delete("b"))
    assert _read(path, position)[0] == [("3", "b")]


def test_lines_at_the_limit_are_read_and_a_batch_is_bounded_by_its_bytes_as_well(path: Path) -> None:
    frame = len(json.dumps({"op": "upsert", "type": "shops", "version": 1, "record": shop("Oak"), "x": ""}))
    line = {"op": "upsert", "type": "shops", "version": 1, "record": shop("Oak"), "x": "x" * (MAX_LINE - frame)}
    text = json.dumps(line).encode() + b"\n"
    assert len(text) == MAX_LINE + 1
    path.write_bytes(text * 9)
    source, position, sizes, more = ChangeFile(path, lenient=True), None, list[int](), True
    while more:
        batch = source.read(position, 100)
        position, more = batch.position, batch.more
        sizes.append(len(batch.changes))
        assert batch.refused == ()
    assert (sum(sizes), max(sizes) <= 4) == (9, True)


def test_more_is_true_only_for_a_whole_line_behind_a_full_block(path: Path) -> None:
    blank = b" " * (MAX_LINE - 1) + b"\n"
    path.write_bytes(3 * blank + blank[10:] + _delete("a")[:-1])
    changes, position, more = _read(path)
    assert (changes, more) == ([], False)
    _append(path, b"\n")
    changes, _, more = _read(path)
    assert (changes, more) == ([], True)
    assert _read(path, position)[0] == [("5", "a")]


def test_what_is_no_file_to_follow_is_reported_and_never_waited_for(path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"changes\.ndjson\.gz is gzipped and cannot be followed"):
        ChangeFile(path.with_name("changes.ndjson.gz"))
    os.mkfifo(path)
    with pytest.raises(CatalogueError, match=r"changes\.ndjson is no regular file"):
        ChangeFile(path).read(None, 1)
    path.unlink()
    path.mkdir()
    with pytest.raises(CatalogueError, match=r"changes\.ndjson is no regular file"):
        ChangeFile(path).read(None, 1)
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises(CatalogueError, match=r"changes\.ndjson cannot be read: Too many levels"):
        ChangeFile(path).read(None, 1)


LINES = st.lists(
    st.one_of(
        st.builds(lambda key: _delete(f"k{key}"), st.integers(0, 5)),
        st.sampled_from(
            [
                b"\n",
                b" \r\n",
                b'{"op": "up\n',
                b"\0\0\n",
                _delete("k1")[:-1] + b"\r\n",
                json.dumps(
                    {"op": "upsert", "type": "shops", "version": 1, "record": shop("Źdźbło")}, ensure_ascii=False
                ).encode()
                + b"\n",
            ]
        ),
    ),
    max_size=20,
)


@pytest.mark.rule("G3")
@given(lines=LINES, data=st.data())
def test_however_it_is_written_and_read_each_change_comes_exactly_once_and_in_order(
    lines: list[bytes], data: st.DataObject
) -> None:
    content, whole = b"".join(lines), LineCutter()
    whole.feed(content)
    expected = gather(whole, lambda: False, "changes.ndjson", len(lines), lenient=False)
    changes, refused, position, taken, more = list[Change](), list[RefusedChange](), None, 0, True
    with TemporaryDirectory() as folder:
        path = Path(folder) / "changes.ndjson"
        source = ChangeFile(path)
        while taken < len(content) or more:
            if taken < len(content):
                end = data.draw(st.integers(taken + 1, len(content)))
                _append(path, content[taken:end])
                taken = end
            for _ in range(data.draw(st.integers(0, 3)) if taken < len(content) else 1):
                source = data.draw(st.sampled_from([source, ChangeFile(path)]))
                most = data.draw(st.integers(1, 5))
                batch = source.read(position, most)
                assert len(batch.changes) + len(batch.refused) <= most
                changes, refused = [*changes, *batch.changes], [*refused, *batch.refused]
                position, more = batch.position, batch.more
    assert (tuple(changes), tuple(refused)) == expected


_BOUND_S = 20.0


class Pipe:
    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.producer: BinaryIO = os.fdopen(writing, "wb", buffering=0)
        self.stream: BinaryIO = os.fdopen(reading, "rb")
        self.source = ChangeStream(self.stream, "stdin")

    def until(self, done: Callable[[], bool], most: int = 100) -> tuple[list[Change], list[RefusedChange]]:
        """Read until something is so; what was read."""
        changes, refused, deadline = list[Change](), list[RefusedChange](), time.monotonic() + _BOUND_S
        while not done() and time.monotonic() < deadline:
            batch = self.source.read(None, most)
            assert batch.position is None
            assert len(batch.changes) + len(batch.refused) <= most
            changes, refused = [*changes, *batch.changes], [*refused, *batch.refused]
            if not batch.more:
                time.sleep(0.002)
        assert done()
        return changes, refused

    def keys(self, count: int) -> list[str]:
        """Read that many changes; their keys."""
        changes, deadline = list[Change](), time.monotonic() + _BOUND_S
        while len(changes) < count and time.monotonic() < deadline:
            changes += self.source.read(None, 100).changes
            time.sleep(0.002)
        return [change.key for change in changes]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.producer.close()
    pipe.until(lambda: pipe.source.ended)
    pipe.stream.close()


def test_nothing_is_waited_for_and_changes_come_as_they_are_written(pipe: Pipe) -> None:
    source: ChangeSource = pipe.source
    assert (source.read(None, 5).changes, source.ended) == ((), False)
    pipe.producer.write(_delete("a") + _delete("b") + _delete("c")[:-3])
    assert pipe.keys(2) == ["a", "b"]
    assert (source.read(None, 5).changes, source.ended) == ((), False)
    pipe.producer.write(_delete("c")[-3:])
    assert pipe.keys(1) == ["c"]


def test_a_stream_ends_when_it_was_closed_and_everything_was_read_its_unfinished_last_line_too(pipe: Pipe) -> None:
    pipe.producer.write(b"\xef\xbb\xbf" + _delete("a") + b"\r\n" + b"torn\n" + _delete("b") + _delete("c")[:-1])
    pipe.producer.close()
    changes, refused = pipe.until(lambda: pipe.source.ended, most=1)
    assert [(change.location, change.key) for change in changes] == [
        ("stdin:1", "a"),
        ("stdin:4", "b"),
        ("stdin:5", "c"),
    ]
    assert refused == [RefusedChange("stdin:3", ("the line is not valid JSON",), "torn")]
    last = pipe.source.read(None, 5)
    assert (last.changes, last.refused, last.position, last.more) == ((), (), None, False)


def test_a_line_beyond_a_mebibyte_is_refused_and_the_next_one_is_read(pipe: Pipe) -> None:
    lines = b"x" * (5 * MAX_LINE) + b"\n" + _delete("a") + b"y" * (MAX_LINE + 1)
    writer = threading.Thread(target=lambda: (pipe.producer.write(lines), pipe.producer.close()))
    writer.start()
    changes, refused = pipe.until(lambda: pipe.source.ended)
    writer.join()
    reasons = (f"the line is longer than {MAX_LINE} bytes",)
    assert [(change.location, change.key) for change in changes] == [("stdin:2", "a")]
    assert refused == [
        RefusedChange(f"stdin:{number}", reasons, sign * BEGINNING) for number, sign in ((1, "x"), (3, "y"))
    ]


def test_a_producer_waits_while_no_reader_reads_and_loses_nothing(pipe: Pipe) -> None:
    line = _delete("a")[:-1].ljust(1_023) + b"\n"
    count = 16_000
    written = list[int]()

    def produce() -> None:
        for _ in range(count):
            written.append(pipe.producer.write(line) or 0)
        pipe.producer.close()

    writer = threading.Thread(target=produce)
    writer.start()
    held = _steady(lambda: len(written), least=101)
    changes, refused = pipe.until(lambda: pipe.source.ended)
    writer.join()
    # The queue holds 4 MiB in 64 blocks, which have one line each where the reader is quick, and the pipe 64 KiB.
    assert 100 < held < 5_600
    assert (len(changes), refused, changes[-1].location) == (count, [], f"stdin:{count}")


def _steady(count: Callable[[], int], least: int = 0) -> int:
    """A count when it has stayed the same for half a second, and is at least `least`: a busy machine may pause."""
    deadline, last, since = time.monotonic() + _BOUND_S, -1, time.monotonic()
    while time.monotonic() < deadline and (last < least or time.monotonic() - since < 0.5):
        if count() != last:
            last, since = count(), time.monotonic()
        time.sleep(0.01)
    return last


def test_a_stream_that_breaks_is_reported_after_the_changes_before_it() -> None:
    # The leader's end of a terminal gives an input error when the other end goes.
    leader, follower = os.openpty()
    with os.fdopen(leader, "rb", buffering=0) as stream:
        source = ChangeStream(stream, "terminal")
        os.write(follower, _delete("a"))
        os.close(follower)
        keys = list[str]()

        def read() -> None:
            deadline = time.monotonic() + _BOUND_S
            while time.monotonic() < deadline:
                keys.extend(change.key for change in source.read(None, 5).changes)

        with pytest.raises(CatalogueError, match=r"terminal cannot be read: Input/output error"):
            read()
    assert (keys, source.ended) == (["a"], False)


def test_a_program_that_reads_its_standard_input_so_ends_cleanly_while_the_producer_is_silent() -> None:
    program = (
        "import sys, time\n"
        "from indexer.sources.changes import ChangeStream\n"
        "source = ChangeStream(sys.stdin.buffer, 'stdin')\n"
        "while not (batch := source.read(None, 5)).changes:\n"
        "    time.sleep(0.01)\n"
        "print(batch.changes[0].location, batch.changes[0].key, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(_delete("a"))
        process.stdin.flush()
        assert process.wait(_BOUND_S) == 0
        assert (process.stdout.read(), process.stderr.read()) == (b"stdin:1 a\n", b"")
