"""What sinks share: dead letters, holders of a lease (G4), memory that is returned, outcomes of bulk requests."""

import ctypes
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from bench.commands import memory_mib
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import LeaseHolder
from indexer.sinks.opensearch.bulk_loading import operation_failures
from indexer.sinks.opensearch.retries import UNREADABLE, RequestFailure
from shop_directory.typeahead.writing.build import return_freed_memory

_NOW = datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)
_LETTER: Final = ("shops", "s1", 400, "mapper_parsing_exception", {"id": "s1", "name": "Lämp\n"})
_WRITTEN = {
    "at": "2031-05-06T07:08:09.123Z",
    "index": "shops",
    "id": "s1",
    "status": 400,
    "reason": "mapper_parsing_exception",
    "document": {"id": "s1", "name": "Lämp\n"},
}


def _letters(path: Path) -> DeadLetters:
    return DeadLetters(path, now=lambda: _NOW)


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.rule("V1.silent")
def test_the_first_letter_makes_a_file_that_the_owner_alone_can_read(tmp_path: Path) -> None:
    path = tmp_path / "private" / "letters.ndjson"
    letters = _letters(path)
    assert list(tmp_path.iterdir()) == []
    letters.add(*_LETTER)
    assert (_mode(path.parent), _mode(path)) == (0o700, 0o600)
    assert _lines(path) == [_WRITTEN]  # written already, before it is closed
    letters.close()


@pytest.mark.rule("V1.silent")
def test_letters_are_added_to_those_of_earlier_runs_after_half_a_line_and_others_read_them_no_longer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "letters.ndjson"
    path.write_text('{"earlier": 1}\n{"at": "203', encoding="utf-8")
    path.chmod(0o644)
    letters = _letters(path)
    letters.add(*_LETTER)
    letters.add(*_LETTER)
    letters.close()
    first, half, *added = path.read_text(encoding="utf-8").splitlines()
    assert (first, half, [json.loads(line) for line in added]) == ('{"earlier": 1}', '{"at": "203', [_WRITTEN] * 2)
    assert _mode(path) == 0o600


def test_letters_of_many_threads_are_whole_lines(tmp_path: Path) -> None:
    letters = _letters(tmp_path / "letters.ndjson")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: letters.add(*_LETTER), range(400)))
    letters.close()
    assert _lines(letters.path) == [_WRITTEN] * 400


@pytest.mark.rule("V1.silent")
def test_a_file_that_cannot_be_written_is_said_without_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "letters.ndjson"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SinkError) as raised:
        _letters(path).add(*_LETTER)
    assert str(raised.value) == f"the dead-letter file {path} cannot be written: Too many levels of symbolic links"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.rule("G4")
def test_this_process_lives_and_one_before_it_with_its_number_does_not() -> None:
    here = LeaseHolder.here("build")
    assert here.started is not None
    assert (here.job, here.pid, here.is_dead()) == ("build", os.getpid(), False)
    assert replace(here, started=here.started - 1).is_dead()


_BLOCK_BYTES = 64 * 1024  # the C library has larger ones of the system, one by one
_BLOCKS = 2_000


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library cannot return memory")
def test_freed_memory_is_returned_although_a_later_block_is_in_use() -> None:
    blocks = [b"x" * (_BLOCK_BYTES + number % 2) for number in range(_BLOCKS)]
    del blocks[:-1]
    before, _ = memory_mib(os.getpid())
    return_freed_memory()
    after, _ = memory_mib(os.getpid())
    assert before - after > _BLOCKS * _BLOCK_BYTES / 2**20 * 0.9
    assert blocks[0].startswith(b"x")


_DONE = {"index": {"status": 201}}


@pytest.mark.parametrize(
    ("status", "kind", "is_transient", "concerns_document"),
    [
        (None, "no connection", True, False),
        (429, "rejected", True, False),
        (503, "unavailable", True, False),
        (404, "index_not_found_exception", True, False),
        (400, "mapper", False, True),
        (413, "x", False, True),
        (400, "index_closed_exception", False, False),
        (401, "x", False, False),
        (403, "cluster_block_exception", False, False),
        (409, "x", False, False),
    ],
)
def test_a_failure_is_transient_or_due_to_the_document_or_fatal(
    status: int | None, kind: str, *, is_transient: bool, concerns_document: bool
) -> None:
    failure = RequestFailure(status, kind)
    assert (failure.is_transient, failure.concerns_document) == (is_transient, concerns_document)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"items": None},
        {"items": [{}]},
        {"items": ["x"]},
        {"items": [{"index": None}]},
        {"items": [_DONE, _DONE]},
        {"items": []},
        {"items": [{"index": {"status": 400, "error": "text"}}]},
        "<html>",
    ],
    ids=str,
)
def test_an_answer_that_does_not_say_it_of_each_operation_is_a_failure_of_all(answer: Any) -> None:  # noqa: ANN401
    assert operation_failures(answer, 1) == [UNREADABLE]
