"""The load of the typeahead comparison: what is read of it, when it is due, and that failures are no figures."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from bench.typeahead.inputs import Inputs
from bench.typeahead.load import Load, LoadError, NoAnswerYetError, Targets, WrkCounts, checked, read_wrk
from bench.typeahead.paced import Pacer, whole
from bench.typeahead.results import Unmeasured
from bench.typeahead.run import Comparison, Procedure
from bench.typeahead.system import BuildStats, RunningServer, System
from bench.typeahead.workload import TypedQuery
from tests.support.loopback import listening

COUNTED = (
    "Running 3s test @ http://127.0.0.1:1\n"
    'COUNTED {"requests": 400, "microseconds": 2000000, "bytes": 600000, "refused": 0, "broken": 0}\n'
)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = self.path.startswith("/suggest")
        body = b'{"shops":[{"id":"a"},{"id":"b"}]}' if found else b"{}"
        self.send_response(200 if found else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Small(System):
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


def test_an_answer_is_whole_when_its_body_is() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
    assert not whole(head)
    assert not whole(head + b"\r\nabc")
    assert whole(head + b"\r\nabcd")
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\n"
    assert not whole(chunked)
    assert whole(chunked + b"0\r\n\r\n")


@pytest.mark.parametrize(("target", "refused"), [("/suggest?q=a", 0), ("/other", 60)])
def test_the_paced_load_asks_for_all_and_counts_refusals(target: str, refused: int) -> None:
    request = f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with listening(Answers) as port:
        pacer = Pacer(port, [request], connections=3)
        result = pacer.run([number / 400 for number in range(60)])
        pacer.close()
    assert (result.refused, result.p50_us > 0, result.p99_us >= result.p50_us) == (refused, True, True)
    assert result.asked == pytest.approx(60 / (59 / 400))


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
