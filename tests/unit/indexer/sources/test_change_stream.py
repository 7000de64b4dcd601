"""Changes from a pipe: taken without waiting, and the producer is held up when they are not taken."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pytest

from indexer.records.problems import CatalogueError
from indexer.sources.changes import ChangeStream
from indexer.sources.lines import BEGINNING, MAX_LINE
from indexer.sources.protocol import Change, ChangeSource, RefusedChange

_BOUND_S = 20.0


def _delete(key: str) -> bytes:
    return json.dumps({"op": "delete", "type": "shops", "key": key, "version": 1}).encode() + b"\n"


class Pipe:
    """A pipe with its stream of changes at one end."""

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


def test_a_stream_without_anything_ends(pipe: Pipe) -> None:
    pipe.producer.close()
    assert pipe.until(lambda: pipe.source.ended) == ([], [])


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
