"""The typeahead comparison: its load, its peers, and the report that is computed from rounds and drawn."""

import http.client
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from opensearchpy import OpenSearch

from bench.typeahead.findings import findings
from bench.typeahead.inputs import Inputs
from bench.typeahead.load import Load, LoadError, Paced, read_wrk
from bench.typeahead.paced import Pacer
from bench.typeahead.peers import PEERS
from bench.typeahead.peers.opensearch_raw import OpenSearchAsYouType, OpenSearchCompletion, RawOpenSearch
from bench.typeahead.peers.shops import public_shops
from bench.typeahead.quality import QualityScores
from bench.typeahead.report import page
from bench.typeahead.results import Claim, Report, Result, Round, Size, Unmeasured
from bench.typeahead.run import Comparison, Procedure
from bench.typeahead.system import BuildStats, Memory, Role, RunningServer, System, descendants
from bench.typeahead.workload import TypedQuery
from tests.engines.relevance.metrics import Quality
from tests.support.catalogues import shop, write_catalogue
from tests.support.loopback import Forwarding, listening

COUNTED = (
    "Running 3s test @ http://127.0.0.1:1\n"
    'COUNTED {"requests": 400, "microseconds": 2000000, "bytes": 600000, "refused": 0, "broken": 0}\n'
)


class Answers(Forwarding):
    def through(self, body: bytes) -> None:
        del body
        found = self.path.startswith("/suggest")
        self.reply(200 if found else 404, b'{"shops":[{"id":"a"},{"id":"b"}]}' if found else b"{}")


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


COMPILED = "sonic"
OVER_OPENSEARCH = (OpenSearchAsYouType, OpenSearchCompletion)
SHOPS = [
    *(shop(f"Filler {number:02}", f"filler-{number:02}.internal", popularity=0.1) for number in range(42)),
    shop("Northwind Lamps", "lamps.internal", popularity=0.5),
    shop("Grüne Säge", "saege.internal"),
    shop("Blue Kettle", "blue.internal", aliases=["Teatime"], popularity=0.2),
    shop("Kettle of Fish", "fish.internal", popularity=0.9),
    shop("Marble & Oak", "marble-oak.internal", countries=["DE"], popularity=0.3),
    shop("Marble Arch", "marble-arch.internal", countries=["FR"], popularity=0.4),
    shop("Marble Hall", "marble-hall.internal", countries=["WORLDWIDE"], popularity=0.2),
    shop("Hidden Lighthouse", "lighthouse.internal", popularity=1.0, visibility="under_review"),
]
FIRST = {
    "north": "shop_lamps_internal",
    "northwind lam": "shop_lamps_internal",
    "nortwind": "shop_lamps_internal",
    "grune sa": "shop_saege_internal",
    "teat": "shop_blue_internal",
    "kettle": "shop_fish_internal",
    "https://www.marble-hall.internal/basket?x=1": "shop_marble-hall_internal",
    "m": "shop_marble-arch_internal",
    "": "shop_fish_internal",
}
# Completion has nothing for a blank text: it completes what was begun.
UNANSWERED = {OpenSearchCompletion.name: [""]}
Ask = Callable[..., list[str]]


@pytest.mark.parametrize("kind", [peer for peer in PEERS if peer not in OVER_OPENSEARCH], ids=lambda kind: kind.name)
def test_a_peer_answers_with_the_right_shop_first(
    kind: type[System], tmp_path: Path, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = kind()
    if (absent := peer.missing()) is not None:
        with capsys.disabled():
            print(f"\nABSENT: {peer.name}: {absent}")  # noqa: T201 - said loudly
        assert "install" in absent
        assert peer.name == COMPILED or not pytestconfig.getoption("--require-real")
        return
    # Not in pytest's folder: each start of pytest closes that to the user that PostgreSQL runs as.
    with TemporaryDirectory(prefix="shop-directory-peer-") as folder:
        built = peer.build(_corpus(tmp_path), Path(folder))
        assert built.seconds > 0
        with peer.serving(Path(folder)) as served, _asking(peer, served.port) as ask:
            _check(peer, ask)
            pids = descendants(served.pids)
    assert built.index_mb > 0 or peer.name in {"minisearch", "orama"}
    assert any(character.isdigit() for character in peer.version())
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.opensearch
@pytest.mark.parametrize("kind", OVER_OPENSEARCH, ids=lambda kind: kind.name)
def test_a_raw_opensearch_answers_with_the_right_shop_first(
    kind: type[RawOpenSearch], tmp_path: Path, opensearch_url: str
) -> None:
    peer = kind()
    with closing(OpenSearch([opensearch_url])) as client:
        try:
            peer.fill(client, public_shops(_corpus(tmp_path)))
            with _asking(peer, int(opensearch_url.rpartition(":")[2])) as ask:
                _check(peer, ask)
        finally:
            client.indices.delete(index=peer.index_name, ignore_unavailable=True)


def _corpus(folder: Path) -> Path:
    return write_catalogue(folder / "shops.ndjson", SHOPS)


def _check(peer: System, ask: Ask) -> None:
    unanswered = UNANSWERED.get(peer.name, [])
    expected = {typed: [] if typed in unanswered else [shop_id] for typed, shop_id in FIRST.items()}
    assert {typed: ask(typed)[:1] for typed in FIRST} == expected
    assert set(ask("marble", "DE")) == {"shop_marble-oak_internal", "shop_marble-hall_internal"}
    assert len(ask("fill")) == 8
    assert "shop_lighthouse_internal" not in ask("hidden lighthouse")


@contextmanager
def _asking(peer: System, port: int) -> Iterator[Ask]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(typed: str, country: str | None = None) -> list[str]:
        connection.request("GET", peer.path(typed, country))
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == http.HTTPStatus.OK, json.loads(body)
        return peer.ids(body)

    yield ask
    connection.close()


GOOD = QualityScores({"exact_name": Quality(10, 0.9, 1.0, 0.95), "prefix": Quality(10, 0.5, 0.6, 0.5)}, 3.5)

TIMES = "by processor time it would be"
RATIO = "p99 is 3.0 times its p50, under 5 wanted (the bare server at its half load: 3.0, p99 0.09 ms)."


def measured(per_second: float, p50_us: float, p99_us: float, *, paced: Paced | None = None) -> Round:
    half = paced or Paced(per_second / 2, per_second / 2, p50_us, p50_us * 3)
    return Round(per_second, 1e6 / per_second, 5e5 / per_second, p50_us, p99_us, half, half)


def result(name: str, role: Role, *rounds: Round, quality: QualityScores | None = None) -> Result:
    return Result(name, role, "About.", "1.2", BuildStats(2.5, 40.0), 970.0, rounds, Memory(120.0, 100.0), quality)


OURS = result("embedded-cold", Role.OURS, measured(9000, 100, 180), measured(10_000, 110, 170), quality=GOOD)
WARM = result("embedded-warm", Role.OURS, measured(35_000, 40, 70), quality=GOOD)
BARE = result("bare", Role.BARE, measured(40_000, 30, 60))
PEER = result("tantivy", Role.PEER, measured(2_000, 400, 900), quality=replace(GOOD, keystrokes=4.0))


def size(*results: Result, shops: int = 100_000) -> Size:
    return Size(shops, shops + 3_295, mixed=True, results=results)


def report(*sizes: Size) -> Report:
    return Report("2026-11-21T12:00:00+00:00", "c" * 40, {"cores": "2"}, {"rounds": "2"}, {"corpus": 1}, sizes)


def test_a_paced_round_counts_if_its_rate_was_held_and_about_half() -> None:
    late = measured(10_000, 1, 1, paced=Paced(5_000, 4_000, 10, 20))
    slow = measured(5_000, 1, 1, paced=Paced(2_500, 2_500, 10, 30))
    right = measured(9_900, 1, 1, paced=Paced(4_950, 4_950, 10, 40))
    assert result("x", Role.OURS, late, slow, right).calmest(lambda one: one.even).p99_us == 40
    assert result("x", Role.OURS, late).calmest(lambda one: one.even).p99_us == 20


def test_what_was_to_be_shown_is_computed() -> None:
    assert list(findings(report(size(OURS, WARM, PEER, BARE)))) == [
        f"HELD: embedded-cold answers 0.25 of the bare server, at least 0.2 wanted; {TIMES} 0.25.",
        f"HELD: embedded-warm answers 0.88 of the bare server, at least 0.7 wanted; {TIMES} 0.88.",
        f"HELD: embedded-cold at 0.45 of saturation, requests even: {RATIO}",
        f"HELD: embedded-cold at 0.45 of saturation, requests by chance: {RATIO}",
        f"HELD: embedded-warm at 0.50 of saturation, requests even: {RATIO}",
        f"HELD: embedded-warm at 0.50 of saturation, requests by chance: {RATIO}",
        "HELD: embedded-cold is ahead of every peer (1 took part) on requests a second and p99 at 100,000 shops.",
        "HELD: embedded-warm is ahead of every peer (1 took part) on requests a second and p99 at 100,000 shops.",
        "HELD: success@8 of embedded-cold, embedded-warm: exact_name 1.000; at least 0.97 each wanted.",
        "HELD: embedded-cold, embedded-warm: in no class below the best peer, no more keystrokes.",
    ]


def test_what_does_not_hold_is_said_with_its_figures() -> None:
    slow = result("embedded-cold", Role.OURS, measured(1_000, 500, 1_000), quality=GOOD)
    better = QualityScores({"exact_name": Quality(10, 1.0, 1.0, 1.0), "prefix": Quality(10, 0.4, 0.7, 0.5)}, 3.0)
    found = list(findings(report(size(slow, replace(PEER, quality=better), BARE))))
    assert (
        found[0] == f"**NOT HELD**: embedded-cold answers 0.03 of the bare server, at least 0.2 wanted; {TIMES} 0.03."
    )
    assert found[-3] == (
        "**NOT HELD**: embedded-cold ahead of every peer (1 took part) at 100,000 shops; tantivy answers 2,000 a "
        "second, it 1,000; tantivy's p99 is 0.90 ms, its 1.00 ms."
    )
    assert found[-2] == "HELD: success@8 of embedded-cold: exact_name 1.000; at least 0.97 each wanted."
    assert found[-1] == (
        "**NOT HELD**: embedded-cold: in no class below the best peer, no more keystrokes; success@8 of prefix: "
        "tantivy 0.700, it 0.600; success@1 of exact_name: tantivy 1.000, it 0.900; keystrokes: tantivy 3.00, it 3.50."
    )


def test_the_tables_name_every_system_and_the_absent_ones() -> None:
    whole = replace(
        size(OURS, WARM, PEER, BARE),
        absent=(Unmeasured("sonic", "no crate"),),
        failed=(Unmeasured("orama", "answered 500\nat x"),),
    )
    text = page(report(whole)).splitlines()
    assert (
        "| **embedded-cold** | 10,000 | 0.25 | 100 | 50 | 0.10 / 0.17 | 0.10 / 0.30 | 0.10 / 0.30 | 100 | 2.5 | 40.0 |"
    ) in text
    assert "| class | embedded-cold, embedded-warm | tantivy |" in text
    assert "| prefix | 0.600 (0.500) | 0.600 (0.500) |" in text
    assert "| keystrokes | 3.50 | 4.00 |" in text
    assert "**sonic** not on this machine: no crate" in text
    assert "**orama** FAILED: answered 500" in text


def test_what_other_benchmarks_say_is_held_against_what_was_wanted() -> None:
    claims = (Claim("a page of 100 over one of 10, times", 1.5, 2.0), Claim("round trips", 1.0, None))
    text = page(replace(report(size(OURS)), extra={"find_shop": claims}))
    assert "### find_shop\n\n| figure | value | at most | held |\n| --- | --- | --- | --- |\n" in text
    assert "| a page of 100 over one of 10, times | 1.50 | 2 | yes |\n| round trips | 1.00 | - | - |" in text
    worse = replace(report(size(OURS)), extra={"find_shop": (Claim("a page", 2.5, 2.0),)})
    assert "| a page | 2.50 | 2 | **no** |" in page(worse)
