"""The load of the typeahead comparison: what is read of it, when it is due, and that failures are no figures."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import islice, pairwise
from pathlib import Path

import pytest

from bench.typeahead.inputs import Inputs, inputs_of
from bench.typeahead.load import Load, LoadError, NoAnswerYetError, Paced, Targets, WrkCounts, checked, read_wrk
from bench.typeahead.paced import Pacer, due_times, percentile, sequential, whole
from bench.typeahead.priorities import may_raise_priority, prioritised
from bench.typeahead.results import Unmeasured
from bench.typeahead.run import Comparison, Procedure
from bench.typeahead.system import BuildStats, RunningServer, System, descendants, memory
from bench.typeahead.workload import TypedQuery
from tests.support.loopback import listening

COUNTED = (
    "Running 3s test @ http://127.0.0.1:1\n"
    'COUNTED {"requests": 400, "microseconds": 2000000, "bytes": 600000, "refused": 0, "broken": 0}\n'
)


class Answers(BaseHTTPRequestHandler):
    """A server that knows one path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = self.path.startswith("/suggest")
        body = b'{"shops":[{"id":"a"},{"id":"b"}]}' if found else b"{}"
        self.send_response(200 if found else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Small(System):
    """A system in this process."""

    about = "A server of the test."

    def __init__(self, name: str, *, target: str = "/suggest", absent: str | None = None) -> None:
        self.name = name
        self._target = target
        self._absent = absent

    def missing(self) -> str | None:
        return self._absent

    def version(self) -> str:
        return "1"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        (folder / "index").write_bytes(corpus.read_bytes())
        return BuildStats(1.0, 2.0)

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        assert (folder / "index").exists()
        with listening(Answers) as port:
            yield RunningServer(port, (os.getpid(),))

    def path(self, query: str, country: str | None, limit: int = 8) -> str:
        return super().path(query, country, limit).replace("/suggest", self._target)


def compared(folder: Path, *systems: System) -> tuple[tuple[Unmeasured, ...], tuple[Unmeasured, ...], list[str]]:
    """Who was absent and who failed, and what was said; no round is measured."""
    corpus = folder / "corpus.ndjson"
    corpus.write_text("{}\n")
    said: list[str] = []
    load = Load(core=0, seconds=0.1, connections=2)
    course = Procedure(min(os.sched_getaffinity(0)), load, 0, 0.0, quality=False, apart=False, say=said.append)
    size = Comparison(course, folder, folder, Inputs(corpus, (TypedQuery("ab"),), None)).measure(systems, 1, bare=False)
    return size.absent, size.failed, said


def test_what_wrk_counted_is_read() -> None:
    assert read_wrk(COUNTED) == WrkCounts(400, 2.0, 1500.0)
    assert read_wrk(COUNTED).per_second == 200


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("unable to connect", "wrk counted nothing"),
        (COUNTED.replace('"refused": 0', '"refused": 3'), "3 were refused"),
        (COUNTED.replace('"broken": 0', '"broken": 2'), "2 broken"),
        (COUNTED.replace('"requests": 400', '"requests": 0'), "nothing was answered"),
    ],
)
def test_a_run_with_a_failure_is_no_run(printed: str, reason: str) -> None:
    with pytest.raises(LoadError, match=reason):
        read_wrk(printed)


def test_a_server_may_be_slow_to_answer_at_first_while_it_warms_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows: list[WrkCounts | None] = [None, None, *(WrkCounts(2, 1.0, 100.0) for _ in range(11))]
    begun: list[int] = []

    def wrk(_load: Load, _port: int, _targets: Targets, start: int, _connections: int) -> WrkCounts:
        begun.append(start)
        counted = windows.pop(0)
        if counted is None:
            raise NoAnswerYetError("nothing")
        return counted

    monkeypatch.setattr(Load, "_wrk", wrk)
    targets = Targets(tmp_path / "targets", 22, 100.0)
    Load(core=0, seconds=1.0, connections=2).warm_up(RunningServer(1, ()), targets, 3.0, every=True)
    assert (begun, windows) == ([0, 0, *range(0, 22, 2)], [])


@pytest.mark.parametrize(
    ("rates", "seconds", "windows"),
    [
        # Ten that are no faster than the best before them by more than a twentieth.
        ([100] * 15, 5.0, 11),
        ([100, 120, 119, 124, *[120] * 15], 5.0, 12),
        ([100, 120, 100, 100, 150, 100, 100, 100, 157, *[100] * 15], 5.0, 15),
        # A server that never stops getting faster is measured after three minutes, or the given time.
        ([round(100 * 1.06**number) for number in range(40)], 5.0, 19),
        ([round(100 * 1.06**number) for number in range(40)], 300.0, 31),
    ],
)
def test_a_server_is_warmed_up_until_it_gets_no_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rates: list[int], seconds: float, windows: int
) -> None:
    left = list(rates)
    monkeypatch.setattr(Load, "_wrk", lambda *_asked: WrkCounts(left.pop(0) * 10, 10.0, 100.0))
    Load(core=0, seconds=10.0, connections=2).warm_up(
        RunningServer(1, ()), Targets(tmp_path / "targets", 8, 100.0), seconds, every=False
    )
    assert len(rates) - len(left) == windows


def test_the_warm_up_of_a_server_that_never_answers_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrk(*_asked: object) -> WrkCounts:
        raise NoAnswerYetError("nothing")

    monkeypatch.setattr(Load, "_wrk", wrk)
    targets = Targets(tmp_path / "targets", 8, 100.0)
    load = Load(core=0, seconds=10.0, connections=2)
    load.warm_up(RunningServer(1, ()), targets, 30.0, every=False)
    with pytest.raises(LoadError, match="8 of 8 were not asked for within 190 s"):
        load.warm_up(RunningServer(1, ()), targets, 30.0, every=True)


def test_answers_of_another_size_are_no_answers() -> None:
    counted = WrkCounts(10, 1.0, 1500.0)
    assert checked(counted, 1400.0) is counted
    with pytest.raises(LoadError, match="answers of 1500 bytes on average, where the probe had 300"):
        checked(counted, 300.0)


def test_even_requests_are_due_at_even_distances() -> None:
    assert list(islice(due_times(50.0, "even"), 4)) == pytest.approx([0.0, 0.02, 0.04, 0.06])


def test_requests_by_chance_are_as_many_and_the_same_each_time() -> None:
    due = list(islice(due_times(50.0, "poisson"), 10_001))
    assert due[-1] == pytest.approx(200.0, rel=0.05)
    assert due == list(islice(due_times(50.0, "poisson"), 10_001))
    gaps = [after - before for before, after in pairwise(due)]
    assert sum(gap > 0.02 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.02)


def test_an_answer_is_whole_when_its_body_is() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
    assert not whole(head)
    assert not whole(head + b"\r\nabc")
    assert whole(head + b"\r\nabcd")
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\n"
    assert not whole(chunked)
    assert whole(chunked + b"0\r\n\r\n")


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(1, 201)]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 101, 199, 200]


@pytest.mark.parametrize(("target", "refused"), [("/suggest?q=a", 0), ("/other", 60)])
def test_the_paced_load_asks_for_all_and_counts_refusals(target: str, refused: int) -> None:
    request = f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with listening(Answers) as port:
        pacer = Pacer(port, [request], connections=3)
        result = pacer.run([number / 400 for number in range(60)])
        pacer.close()
    assert (result.refused, result.p50_us > 0, result.p99_us >= result.p50_us) == (refused, True, True)
    assert result.asked == pytest.approx(60 / (59 / 400))


@pytest.mark.parametrize(("target", "all_refused"), [("/suggest?q=a", False), ("/other", True)])
def test_one_caller_asks_when_it_has_been_answered(target: str, *, all_refused: bool) -> None:
    request = f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with listening(Answers) as port:
        measured = sequential(port, [request], seconds=0.2)
    assert (measured.refused > 0, measured.asked == measured.achieved) == (all_refused, True)
    assert measured.p99_us >= measured.p50_us > 0


def test_a_rate_is_held_within_a_twentieth() -> None:
    assert Paced(100.0, 96.0, 1.0, 2.0).on_rate
    assert not Paced(100.0, 94.0, 1.0, 2.0).on_rate


def test_a_server_without_load_has_the_remainder_of_the_core() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as asked,
        subprocess.Popen(command, stdin=subprocess.PIPE) as other,
    ):
        every = [RunningServer(0, (asked.pid,)), RunningServer(0, (other.pid,))]
        with prioritised(every[0], every):
            meanwhile = [os.sched_getscheduler(one.pid) for one in (asked, other)]
        afterwards = [os.sched_getscheduler(one.pid) for one in (asked, other)]
        for one in (asked, other):
            one.communicate()
    assert meanwhile == [os.SCHED_OTHER, os.SCHED_IDLE if may_raise_priority() else os.SCHED_OTHER]
    assert afterwards == [os.SCHED_OTHER, os.SCHED_OTHER]


def test_descendants_and_their_memory_are_counted() -> None:
    alone = memory(RunningServer(0, (os.getpid(),))).rss_mb
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        assert set(descendants((os.getpid(), child.pid))) >= {os.getpid(), child.pid}
        assert descendants((os.getpid(),)).count(child.pid) == 1
        assert memory(RunningServer(0, (os.getpid(),))).rss_mb > alone
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert memory(RunningServer(0, (child.pid,))).rss_mb == 0  # it has ended, and nobody has waited for it yet
    assert child.pid not in descendants((os.getpid(),))


def test_a_system_that_cannot_run_is_named_with_the_reason(tmp_path: Path) -> None:
    absent, failed, said = compared(tmp_path, Small("gone", absent="no such program: install it"))
    assert (absent, failed) == ((Unmeasured("gone", "no such program: install it"),), ())
    assert said == ["ABSENT gone: no such program: install it"]


def test_a_system_with_nonsense_answers_fails_loudly_and_the_others_continue(tmp_path: Path) -> None:
    absent, failed, said = compared(tmp_path, Small("wrong", target="/other"), Small("right"))
    assert absent == ()
    assert [one.name for one in failed] == ["wrong"]
    assert "was answered 404" in failed[0].why
    assert any(line.startswith("FAILED wrong: LoadError") for line in said)
    assert "right: 33 bytes an answer; warming up" in said


def test_an_index_is_built_once(tmp_path: Path) -> None:
    _, _, first = compared(tmp_path, Small("right"))
    _, _, second = compared(tmp_path, Small("right"))
    assert ("right: building" in first, "right: building" in second) == (True, False)


def test_without_development_data_plain_shops_stand_in(tmp_path: Path) -> None:
    made = inputs_of(tmp_path, 300, 500, None)
    assert (len(made.typed), made.dev_data) == (500, None)
    assert len(made.corpus.read_text("utf-8").splitlines()) == 300
    assert made == inputs_of(tmp_path, 300, 500, None)
