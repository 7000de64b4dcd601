"""Dead letters are private, whole lines, and there is no file before the first."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.failures import SinkError
from indexer.sources.protocol import RefusedChange

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


def test_nothing_is_made_before_the_first_letter(tmp_path: Path) -> None:
    letters = _letters(tmp_path / "private" / "letters.ndjson")
    letters.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("V1.silent")
def test_a_letter_can_be_read_by_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "private" / "letters.ndjson"
    letters = _letters(path)
    letters.add(*_LETTER)
    assert (_mode(path.parent), _mode(path)) == (0o700, 0o600)
    assert _lines(path) == [_WRITTEN]  # written already, before it is closed
    letters.close()


@pytest.mark.rule("V1.silent")
def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "letters.ndjson"
    path.touch()
    path.chmod(0o644)
    letters = _letters(path)
    letters.add(*_LETTER)
    letters.close()
    assert _mode(path) == 0o600


def test_a_refused_change_is_stored_as_it_came(tmp_path: Path) -> None:
    letters = _letters(tmp_path / "letters.ndjson")
    letters.add_change(RefusedChange("changes.ndjson:7", ("id: is missing", "name: is missing"), '{"half": "\ud83d'))
    letters.close()
    assert _lines(letters.path) == [
        {
            "at": "2031-05-06T07:08:09.123Z",
            "index": None,
            "id": None,
            "status": None,
            "reason": "id: is missing; name: is missing",
            "location": "changes.ndjson:7",
            "document": '{"half": "\ud83d',
        }
    ]


def test_letters_are_added_to_those_of_earlier_runs_also_after_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "letters.ndjson"
    path.write_text('{"earlier": 1}\n{"at": "203', encoding="utf-8")
    letters = _letters(path)
    letters.add(*_LETTER)
    letters.add(*_LETTER)
    letters.close()
    first, half, *added = path.read_text(encoding="utf-8").splitlines()
    assert (first, half, [json.loads(line) for line in added]) == ('{"earlier": 1}', '{"at": "203', [_WRITTEN] * 2)


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
