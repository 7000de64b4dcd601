"""What an operator does besides building: status, rollback, prune, follow; their figures and their exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from indexer.commands.follow import stopped_by_signals
from indexer.sinks.lease import holding
from tests.support.catalogues import shop
from tests.unit.indexer.commands.index_operator import Operator

LAMP, BOOK = shop("Lamp", id="lamp"), shop("Book", id="book")


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def test_status_shows_every_generation_and_says_by_its_exit_code_that_nothing_is_live(operator: Operator) -> None:
    empty = operator.run("status")
    location = f"the embedded index {(operator.folder / 'index').resolve()}"
    assert (empty.exit_code, empty.stdout) == (
        1,
        f"There is no generation in {location}: build one by shop-directory index build.\n",
    )
    operator.build(LAMP)
    first = operator.live
    operator.build(LAMP, BOOK)
    answer = operator.run_json("status")
    assert answer["location"] == location
    brief = ("generation", "role", "sequence", "can_be_followed", "readable")
    assert [tuple(found[name] for name in brief) for found in answer["generations"]] == [
        (first, "previous", 1, True, True),
        (operator.live, "live", 1, True, True),
    ]
    assert [found["counts"]["shops"] for found in answer["generations"]] == [1, 2]
    assert [found["retired_at"] is None for found in answer["generations"]] == [False, True]
    lines = operator.run("status").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[first, "previous"], [operator.live, "live"]]


@pytest.mark.rule("G2")
def test_rollback_prints_what_is_live_and_a_second_one_goes_forward_again(operator: Operator) -> None:
    operator.build(LAMP, BOOK)
    first = operator.live
    operator.build(LAMP, arguments=("--allow-shrink",))
    second = operator.live
    planned = operator.run_json("rollback", "--dry-run")
    assert (planned["generation"], planned["published"], operator.live) == (first, False, second)
    operator.change(op="upsert", type="shops", record=shop("Vase", id="vase"), version=1)
    answer = operator.run_json("rollback", "--catalogue", str(operator.catalogue))
    assert answer == {
        "generation": first,
        "published": True,
        "counts": {"shops": 3, "categories": 1, "coupons": 0, "offers": 0, "facts": 3},
        "replaced": second,
        "changes": {"applied": 1, "older": 0, "refused": 0, "carried_over": 0},
    }
    assert operator.live == first
    assert operator.run("rollback").exit_code == 0
    assert operator.live == second


@pytest.mark.rule("G2")
def test_a_build_that_loses_too_many_shops_is_exit_code_5_and_nothing_changes(operator: Operator) -> None:
    many = [shop(f"Shop {number}", id=f"s{number}") for number in range(10)]
    operator.build(*many)
    before = operator.live
    done = operator.build(*many[:7])
    assert (done.exit_code, operator.live) == (5, before)
    assert done.stderr.splitlines()[-1] == (
        "Nothing was published: 7 of 10 public shops remain, and at most 20% may be lost: check the catalogue,"
        " give another one an index of its own, or allow the loss by --allow-shrink."
    )
    assert operator.build(*many[:8]).exit_code == 0
    operator.write(*many[:2])
    lowered = operator.run("build", "--catalogue", str(operator.catalogue), SHOP_DIRECTORY_MOST_SHRINK="0.75")
    assert (
        lowered.exit_code,
        lowered.stdout.splitlines()[0].endswith(": 2 shops, 1 categories, 0 coupons, 0 offers, 2 facts."),
    ) == (0, True)


@pytest.mark.rule("G1.golden")
def test_an_acceptance_query_that_fails_is_exit_code_5_and_nothing_changes(operator: Operator) -> None:
    acceptance = operator.folder / "golden.ndjson"
    acceptance.write_text('{"tool": "find_shop", "query": "lamp", "expect": ["lamp"]}\n', encoding="utf-8")
    assert operator.build(LAMP, BOOK, arguments=("--acceptance", str(acceptance))).exit_code == 0
    before = operator.live
    failed = operator.build(BOOK, arguments=("--acceptance", str(acceptance), "--allow-shrink"))
    assert (failed.exit_code, operator.live) == (5, before)
    assert "Nothing was published: 1 of 1 acceptance queries failed: golden.ndjson:1: " in failed.stderr
    acceptance.write_text('{"tool": "find_shop", "query": "lamp", "expects": ["lamp"]}\n', encoding="utf-8")
    wrong = operator.build(LAMP, arguments=("--acceptance", str(acceptance)))
    assert (wrong.exit_code, operator.live) == (1, before)
    assert "golden.ndjson:1: expects is not a known field\n" in wrong.stderr


@pytest.mark.rule("G4")
def test_a_job_that_finds_another_one_at_work_is_exit_code_4_after_its_wait(operator: Operator) -> None:
    operator.build(LAMP)
    with holding(operator.sink.lease(), "prune", 0):
        for command in ("build", "rollback", "prune"):
            done = operator.run(command, "--wait", "0")
            assert done.exit_code == 4
            assert re.search(r"another job has the lease of .*: prune", done.stderr), done.stderr
    assert operator.run("prune", "--wait", "0").exit_code == 0


@pytest.mark.rule("G2")
def test_prune_removes_what_was_retired_a_minute_ago_and_retains_the_previous_one(operator: Operator) -> None:
    names = []
    for _ in range(3):
        operator.build(LAMP)
        names.append(operator.live)
    assert operator.run_json("prune") == {"removed_generations": [], "dry_run": False}
    for name in names[:2]:
        (operator.folder / "index" / "generations" / name / "retired").write_text("2026-01-02T03:04:05+00:00")
    assert operator.run_json("prune", "--dry-run") == {"removed_generations": names[:1], "dry_run": True}
    assert operator.run_json("prune") == {"removed_generations": names[:1], "dry_run": False}
    assert operator.run_json("prune", "--previous") == {"removed_generations": names[1:2], "dry_run": False}
    assert [found.name for found in operator.sink.generations()] == names[2:]
    assert sorted(path.name for path in (operator.folder / "index.state").iterdir()) == [f"{names[2]}.sqlite", "place"]


@pytest.mark.rule("G3")
def test_follow_once_ends_with_1_where_changes_were_refused_and_names_their_file(
    operator: Operator,
) -> None:
    operator.build(LAMP)
    operator.change(op="upsert", type="shops", record=BOOK, version=2)
    operator.change(op="upsert", type="shops", record={**BOOK, "name": "Older"}, version=1)
    operator.change(op="vanish", type="shops", key="zqcanaryzq", version=3)
    done = operator.run("follow", "--catalogue", str(operator.catalogue), "--once", "--json")
    answer = json.loads(done.stdout)
    assert answer.pop("seconds") >= 0
    assert (done.exit_code, answer) == (
        1,
        {
            "generation": operator.live, "applied": 1, "older": 1, "refused": 1, "documents_written": 3,
            "documents_removed": 0, "updates": 1, "failures": 0, "status_failures": 0,
            "reconciled": {"checked": 0, "found": 0, "repaired": 0},
        },
    )  # fmt: skip
    assert "zqcanaryzq" not in done.output
    letters = operator.folder / "index.state" / "dead-letters.ndjson"
    problem = {"code": "bad_input", "message": f"1 changes were refused: see {letters}."}
    assert json.loads(done.stderr.splitlines()[-1]) == {"error": problem}
    again = operator.run("follow", "--catalogue", str(operator.catalogue), "--once")
    assert again.exit_code == 0
    assert (letters.stat().st_mode & 0o777, "zqcanaryzq" in letters.read_text()) == (0o600, True)


def test_follow_without_a_published_generation_is_exit_code_1(operator: Operator) -> None:
    operator.write(LAMP)
    done = operator.run("follow", "--catalogue", str(operator.catalogue))
    assert done.exit_code == 1
    assert "Following ended: no generation is live: build one first" in done.stderr


def test_follow_needs_to_know_what_to_follow(operator: Operator) -> None:
    single = operator.folder / "shops.ndjson"
    single.write_text(json.dumps(LAMP))
    for arguments in ((), ("--catalogue", str(single))):
        done = operator.run("follow", *arguments)
        assert (done.exit_code, "--changes" in done.stderr) == (2, True)


@pytest.mark.rule("G3")
def test_follow_takes_changes_from_standard_input_and_ends_with_it(operator: Operator) -> None:
    operator.build(LAMP)
    lines = [
        {"op": "upsert", "type": "shops", "record": BOOK, "version": 1},
        {"op": "delete", "type": "shops", "key": "lamp", "version": 1},
    ]
    command = [sys.executable, "-m", "indexer", "follow", "--changes", "-", "--json", "--interval", "0.05"]
    done = subprocess.run(
        [*command, "--data-dir", str(operator.folder / "index")],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["applied"] == 2
    live = operator.sink.live()
    assert live is not None
    assert live.counts["shops"] == 1


@pytest.mark.rule("G3")
def test_follow_has_a_low_priority_and_ends_with_exit_code_0_on_a_signal(operator: Operator) -> None:
    operator.build(LAMP)
    operator.change(op="upsert", type="shops", record=BOOK, version=2)
    command = [sys.executable, "-m", "indexer", "follow", "--catalogue", str(operator.catalogue), "--interval", "0.05"]
    with subprocess.Popen(
        [*command, "--data-dir", str(operator.folder / "index")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as following:  # fmt: skip
        assert following.stderr is not None
        said = ""
        while "1 changes applied" not in said and following.poll() is None:
            said += following.stderr.readline()
        assert os.getpriority(os.PRIO_PROCESS, following.pid) >= 10
        os.kill(following.pid, signal.SIGTERM)
        out, _ = following.communicate(timeout=30)
    assert (following.returncode, out.startswith("Followed for ")) == (0, True)
    done = "1 changes applied, 0 older, 0 refused; 3 documents written, 0 removed in 1 updates; 0 attempts failed."
    assert f": {done} Compared " in out


def test_following_logs_in_utc_whatever_the_time_zone_of_the_machine_is(operator: Operator) -> None:
    operator.build(LAMP)
    operator.change(op="upsert", type="shops", record=BOOK, version=2)
    command = [sys.executable, "-m", "indexer", "follow", "--catalogue", str(operator.catalogue), "--once"]
    environment = {**os.environ, "TZ": "Europe/Berlin"}
    start = datetime.now(UTC).replace(microsecond=0)
    done = subprocess.run(
        [*command, "--data-dir", str(operator.folder / "index")],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    logged, said = done.stderr.splitlines()[-1].split(" ", 1)
    assert start <= datetime.strptime(logged, "%Y-%m-%dT%H:%M:%S%z") <= datetime.now(UTC)
    assert said == "INFO 1 changes applied, 0 older, 0 refused; 3 documents written, 0 removed"


@pytest.mark.timeout(20)
def test_a_signal_stops_following_even_while_the_follower_takes_the_lock_of_its_wait() -> None:
    with stopped_by_signals() as stop:
        with stop._cond:  # type: ignore[attr-defined]  # as `stop.wait` has it for a moment
            signal.raise_signal(signal.SIGTERM)
        assert stop.wait(10)


@pytest.mark.rule("G3")
def test_verify_is_exit_code_6_when_something_differs_and_0_once_it_is_repaired(operator: Operator) -> None:
    operator.build(LAMP, BOOK)
    clean = operator.run_json("verify")
    assert clean.pop("seconds") >= 0
    assert clean == {"generation": operator.live, "faults": {}, "found": 0, "repaired": 0, "refused": 0, "checked": 5}
    editor = operator.sink.edit(operator.live)
    editor.write("shops", (), ["lamp"])
    editor.show()
    editor.close()
    done = operator.run("verify")
    assert done.exit_code == 6
    first, *rest = done.stdout.splitlines()
    assert first.startswith(f"Compared 5 documents of generation {operator.live} in ")
    assert (first.endswith(" s: 1 differ, 0 were repaired."), rest) == (True, ["1 missing in shops"])
    repaired = operator.run_json("verify", "--repair")
    assert (repaired["faults"], repaired["repaired"]) == ({"missing": {"shops": 1}}, 1)
    operator.write(LAMP, BOOK, shop("Vase", id="vase"))
    lost = operator.run("verify", "--catalogue", str(operator.catalogue), "--json")
    assert (lost.exit_code, json.loads(lost.stdout)["faults"]) == (6, {"lost_change": {"shops": 1}})
    mended = operator.run_json("verify", "--catalogue", str(operator.catalogue), "--repair")
    assert mended["repaired"] == 1
    assert operator.run_json("status")["generations"][-1]["counts"]["shops"] == 3


def test_a_state_directory_of_another_index_is_refused(operator: Operator) -> None:
    operator.build(LAMP)
    done = operator.run(
        "status", "--state-dir", str(operator.folder / "index.state"), "--data-dir", str(operator.folder / "other")
    )
    assert (done.exit_code, "belongs to the embedded index" in done.stderr) == (1, True)
