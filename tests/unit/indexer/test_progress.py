"""Progress: lines where no terminal is, a bar on a terminal, and always how much was done."""

import io
import re
from types import SimpleNamespace

import pytest

from indexer.progress import stage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_stage_ends_with_one_line_of_what_was_done() -> None:
    stream = io.StringIO()
    with stage("Indexing", 3_000, "shops", stream) as advance:
        advance(1_000)
        advance(2_000)
    assert re.fullmatch(r"Indexing: 3,000 shops in \d+\.\d s\n", stream.getvalue())


def test_a_long_stage_reports_how_far_it_is_how_fast_and_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 1.0, 10.0, 11.0, 20.0))
    monkeypatch.setattr("indexer.progress.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    stream = io.StringIO()
    with stage("Indexing", 4_000, "shops", stream) as advance:
        for _ in range(3):
            advance(500)
    assert stream.getvalue().splitlines() == [
        "Indexing: 1,000 of 4,000 shops, 100/s, 30 s left",
        "Indexing: 1,500 shops in 20.0 s",
    ]


def test_progress_goes_to_standard_error_and_never_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with stage("Reading shops", 0, "bytes") as advance:
        advance(0)
    captured = capsys.readouterr()
    assert (captured.out, captured.err.startswith("Reading shops: 0 bytes in ")) == ("", True)


def test_a_stage_that_fails_does_not_claim_to_be_done() -> None:
    stream = io.StringIO()
    work = stage("Indexing", 10, "shops", stream)
    work.__enter__()(1)
    broken = ValueError("broken")
    assert not work.__exit__(ValueError, broken, None)
    assert stream.getvalue() == ""


def test_a_stage_of_unknown_length_shows_that_it_goes_on_and_how_long_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 1.0, 6.0, 7.0, 8.5))
    monkeypatch.setattr("indexer.progress.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    stream = io.StringIO()
    with stage("Merging", stream=stream) as advance:
        for _ in range(3):
            advance(0)
    assert stream.getvalue().splitlines() == ["Merging: for 6 s", "Merging: done in 8.5 s"]


def test_a_terminal_gets_a_bar_for_a_stage_within_a_stage() -> None:
    stream = Terminal()
    with stage("Writing out shops", stream=stream), stage("Sorting", 10, "texts", stream) as advance:
        advance(10)
    assert "Writing out shops" in stream.getvalue()
    assert "Sorting" in stream.getvalue()
    assert "100%" in stream.getvalue()
