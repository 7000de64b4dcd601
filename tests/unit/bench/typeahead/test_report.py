"""The report of the typeahead comparison: computed from rounds, put between a page's markers, drawn as a picture."""

from dataclasses import replace
from pathlib import Path

from bench.typeahead.findings import findings
from bench.typeahead.load import Paced
from bench.typeahead.quality import QualityScores
from bench.typeahead.report import page
from bench.typeahead.results import Claim, Report, Result, Round, Size, Unmeasured, read, write
from bench.typeahead.system import BuildStats, Memory, Role
from tests.engines.relevance.metrics import Quality

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


def test_a_report_is_written_and_read_again(tmp_path: Path) -> None:
    whole = report(replace(size(OURS, PEER), absent=(Unmeasured("sonic", "no crate"),)))
    write(whole, tmp_path / "report.json")
    assert read(tmp_path / "report.json") == whole


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
