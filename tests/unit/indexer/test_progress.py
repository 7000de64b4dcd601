"""Progress: lines where no terminal is, a bar on a terminal, and always how much was done."""

import io
import re
from types import SimpleNamespace

import pytest

from indexer.progress import Estimate, stage, whole_job


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


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("indexer.progress.time", SimpleNamespace(monotonic=lambda: self.now))


def test_what_remains_of_a_job_is_within_a_fifth_from_the_first_tenth_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    # The stages take 100, 20, 800 and 80 seconds; the expected work is wrong by up to a half.
    estimate = Estimate({"Reading": 10, "Sorting": 3, "Merging": 2, "Indexing": 80, "Sealing": 12})
    for title, seconds, has_length in (
        ("Reading", 100, True),
        ("Sorting", 20, False),
        ("Indexing", 800, True),
        ("Sealing", 80, False),
    ):
        estimate.begin(title)
        began = clock.now
        for passed in range(10, seconds, 10):
            clock.now = began + passed
            remaining = estimate.remaining(clock.now, passed / seconds if has_length else None)
            assert remaining is not None
            if clock.now >= 100:
                assert abs(clock.now + remaining - 1_000) < 200, (title, clock.now, remaining)
        clock.now = began + seconds


def test_a_stage_of_unknown_length_remains_at_the_pace_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    estimate = Estimate({"Reading": 10, "Sorting": 4, "Sealing": 6})
    estimate.begin("Reading")
    assert estimate.remaining(0.0, 0.0) is None
    clock.now = 20.0
    estimate.begin("Sorting")
    # Two seconds for each unit of work: eight for sorting, of which three have passed, and twelve for sealing.
    assert estimate.remaining(23.0, None) == 17.0
    assert estimate.remaining(60.0, None) == 12.0
    clock.now = 60.0
    estimate.begin("Sealing")
    assert estimate.remaining(60.0, None) == pytest.approx(60 / 14 * 6)


def test_a_stage_that_is_not_expected_has_no_estimate_and_later_ones_have(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    estimate = Estimate({"Reading": 1, "Indexing": 1})
    estimate.begin("Reading")
    clock.now = 10.0
    estimate.begin("Another")
    assert estimate.remaining(15.0, 0.5) is None
    clock.now = 20.0
    estimate.begin("Indexing")
    assert estimate.remaining(25.0, 0.5) == 5.0


def test_lines_show_what_remains_of_the_whole_job(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    stream = io.StringIO()
    with whole_job({"Reading": 100.0, "Sorting": 20.0, "Indexing": 2_000.0}):
        with stage("Reading", 100, "bytes", stream) as advance:
            clock.now = 10.0
            advance(50)
            clock.now = 20.0
        with stage("Sorting", stream=stream) as advance:
            clock.now = 26.0
            advance(0)
    with stage("Reading", 100, "bytes", stream) as advance:
        clock.now = 36.0
        advance(50)
    assert stream.getvalue().splitlines() == [
        "Reading: 50 of 100 bytes, 5/s, 10 s left, the whole job 7 min",
        "Reading: 50 bytes in 20.0 s",
        "Sorting: for 6 s, the whole job 7 min",
        "Sorting: done in 6.0 s",
        "Reading: 50 of 100 bytes, 5/s, 10 s left",
        "Reading: 50 bytes in 10.0 s",
    ]


def test_a_terminal_shows_what_remains_of_the_whole_job(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    with whole_job({"Reading": 10.0, "Indexing": 1e9}), stage("Reading", 10, "bytes", stream) as advance:
        advance(5)
    assert "the whole job" in stream.getvalue()
