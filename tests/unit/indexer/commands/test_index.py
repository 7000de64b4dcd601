"""The commands of `shop-directory index`: exit codes, standard output and error, and no value of a bad record."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import Result

from indexer.commands.follow import stopped_by_signals
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.lease import holding
from tests.support import forked
from tests.support.catalogues import coupon, shop, write_catalogue, write_catalogue_directory
from tests.unit.indexer.commands.index_operator import BOOK, LAMP, VASE, Operator

CANARY: Final = "zqcanaryzq"


def _run(tmp_path: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Result:
    return Operator(tmp_path).run("build", *arguments, **(environment or {}))


def _catalogue(tmp_path: Path, *shops: Mapping[str, Any]) -> str:
    return str(write_catalogue(tmp_path / "shops.ndjson", shops))


@pytest.mark.rule("G1")
def test_a_build_is_exit_code_0_and_prints_the_generation_and_the_numbers(tmp_path: Path) -> None:
    path = write_catalogue_directory(
        tmp_path / "catalogue",
        shops=[shop("A", "a.internal", id="s1"), shop("B", "b.internal", visibility="removed")],
        coupons=[coupon("A", "s1"), coupon("B", "unknown")],
    )
    done = _run(tmp_path, "--catalogue", str(path))
    live = EmbeddedSink(tmp_path / "index").live()
    assert (done.exit_code, live is not None) == (0, True)
    published, read, related = done.stdout.splitlines()
    assert published.startswith(f"Published generation {live.generation if live else ''} in ")
    assert published.endswith(" s: 1 shops, 1 categories, 1 coupons, 0 offers.")
    assert related == "Read 2 coupons: 1 of no public shop."
    assert read == ("Read 2 shops: 1 not public, 0 superseded, 0 without their domain; 0 bad records skipped.")
    assert done.stderr.startswith("Reading shops: ")
    assert "\nIndexing facts: 1 shops in " in done.stderr


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path) -> None:
    path = _catalogue(tmp_path, shop("A", "a.internal", id="s1"), shop("B", "a.internal", id="s2"))
    done = _run(tmp_path, "--catalogue", path, "--json")
    summary = json.loads(done.stdout)
    live = EmbeddedSink(tmp_path / "index").live()
    assert live is not None
    assert summary.pop("seconds") >= 0
    assert (done.exit_code, summary) == (
        0,
        {
            "generation": live.generation,
            "published": True,
            "unchanged": False,
            "counts": {"shops": 1, "categories": 1, "coupons": 0, "offers": 0, "facts": 1},
            "read": {"shops": 2},
            "left_out": {},
            "not_public": 0,
            "superseded": 0,
            "lost_domain": 1,
            "disputed_categories": 0,
            "skipped_invalid": 0,
            "changes": {"applied": 0, "older": 0, "refused": 0},
            "kept": {},
            "kept_listing": None,
            "marked": [],
            "notes": ["shops.ndjson:2: left out, its domain belongs to the shop of line 1"],
            "removed_generations": [],
            "restarts": 0,
        },
    )


@pytest.mark.rule("G3", "V1.silent")
def test_a_build_that_keeps_something_from_earlier_changes_says_so_and_names_no_shop(tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    shops = [shop(f"Shop {number}", id=f"shop{number}") for number in range(3)]
    operator.build(*shops)
    operator.change(op="upsert", type="shops", version=2, record={**shops[0], "visibility": "under_review"})
    operator.change(op="upsert", type="shops", version=2, record=shop("New", id=CANARY))
    assert operator.run("follow", "--catalogue", str(operator.catalogue), "--once").exit_code == 0
    (operator.catalogue / "changes.ndjson").unlink()
    listing = tmp_path / "index.state" / "kept-from-changes.ndjson"
    said = (
        "Kept from earlier changes: 1 shops that this catalogue lacks, 1 newer than it. `--fresh-state` builds from"
        " the catalogue alone."
    )
    dry = operator.build(*shops, arguments=("--dry-run",))
    assert (dry.stdout.splitlines()[-1], listing.exists()) == (said, False)
    done = operator.build(*shops)
    assert done.stdout.splitlines()[-1] == f"{said} {listing} names them."
    assert (CANARY in done.output, CANARY in listing.read_text(encoding="utf-8")) == (False, True)
    answer = operator.run_json("build", "--catalogue", str(operator.catalogue))
    assert (answer["kept"], answer["kept_listing"]) == ({"shops": {"lacking": 1, "newer": 1}}, str(listing))
    fresh = operator.run_json("build", "--catalogue", str(operator.catalogue), "--fresh-state")
    assert (fresh["kept"], fresh["kept_listing"], fresh["counts"]["shops"]) == ({}, None, 3)
    assert not listing.exists()


def test_more_than_a_hundred_problems_are_counted_and_a_hundred_listed(tmp_path: Path) -> None:
    path = _catalogue(tmp_path, shop("A"), *(shop(f"B{number}", popularity=-1) for number in range(103)))
    refused = _run(tmp_path, "--catalogue", path)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.splitlines()[-1] == (
        "Nothing was published: 103 bad records: mend them, or build without them by --skip-invalid."
    )
    done = _run(tmp_path, "--catalogue", path, "--skip-invalid")
    listed = [line for line in done.stderr.splitlines() if line.endswith("popularity must be at least 0")]
    assert (done.exit_code, len(listed)) == (0, 100)
    assert "... and 3 more problems\n" in done.stderr
    assert "103 bad records skipped." in done.stdout


@pytest.mark.rule("G2")
@pytest.mark.parametrize("from_sql", [False, True])
def test_a_catalogue_of_no_shops_is_exit_code_1_unless_that_is_allowed(tmp_path: Path, *, from_sql: bool) -> None:
    arguments: tuple[str, ...] = ("--catalogue", _catalogue(tmp_path))
    environment = {}
    if from_sql:
        columns = "id TEXT, name TEXT, domain TEXT, categories TEXT, visibility TEXT"
        with closing(sqlite3.connect(tmp_path / "catalogue.sqlite")) as connection:
            connection.execute(f"CREATE TABLE shops ({columns})")
        arguments, environment = ("--sql",), {"SHOP_DIRECTORY_SQL_URL": f"sqlite:///{tmp_path}/catalogue.sqlite"}
    done = _run(tmp_path, *arguments, environment=environment)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "Nothing was published: the catalogue has no public shop: check it, or publish a directory without shops by"
        " --allow-empty."
    )
    for more in ("--dry-run", "--allow-empty"):
        assert _run(tmp_path, *arguments, more, environment=environment).exit_code == 0


@pytest.mark.rule("G1")
def test_a_cluster_that_is_not_there_is_exit_code_3(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        done = _run(
            tmp_path,
            "--engine",
            "opensearch",
            "--catalogue",
            _catalogue(tmp_path, shop("A")),
            environment={"SHOP_DIRECTORY_OPENSEARCH_URLS": url},
        )
    assert (done.exit_code, done.stdout) == (3, "")
    assert "Nothing was published: the cluster does not answer: ConnectionError" in done.stderr


def test_status_shows_every_generation_and_says_by_its_exit_code_that_nothing_is_live(operator: Operator) -> None:
    empty = operator.run("status")
    location = f"the embedded index {(operator.folder / 'index').resolve()}"
    assert (empty.exit_code, empty.stdout) == (
        1,
        f"There is no generation in {location}: build one by shop-directory index build.\n",
    )
    assert list(operator.folder.iterdir()) == []
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
    operator.change(op="upsert", type="shops", record=shop("Vase", id="vase"), version=1)
    source = ("--catalogue", str(operator.catalogue))
    planned = operator.run_json("rollback", *source, "--dry-run")
    assert operator.live == second
    answer = operator.run_json("rollback", *source)
    assert planned == {**answer, "published": False}
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


@pytest.mark.rule("G3")
def test_a_first_build_from_tables_reports_no_changes_where_it_read_its_rows_again(tmp_path: Path) -> None:
    columns = "id TEXT, name TEXT, domain TEXT, categories TEXT, visibility TEXT, row_version INTEGER"
    row = ("s1", "A", "a.internal", '[{"slug": "a", "name": "A"}]', "public", 7)
    with closing(sqlite3.connect(tmp_path / "catalogue.sqlite")) as connection, connection:
        connection.execute(f"CREATE TABLE shops ({columns})")
        connection.execute("INSERT INTO shops VALUES (?, ?, ?, ?, ?, ?)", row)
    (tmp_path / "mapping.toml").write_text('[shops]\nversion = "row_version"\n', encoding="utf-8")
    environment = {"SHOP_DIRECTORY_SQL_URL": f"sqlite:///{tmp_path}/catalogue.sqlite"}
    arguments = ("--sql", "--mapping", str(tmp_path / "mapping.toml"))
    done = _run(tmp_path, *arguments, environment=environment)
    assert (done.exit_code, [line for line in done.stdout.splitlines() if "Changes" in line]) == (0, [])
    answer = json.loads(_run(tmp_path, *arguments, "--json", environment=environment).stdout)
    assert answer["changes"] == {"applied": 0, "older": 1, "refused": 0}


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
        lowered.stdout.splitlines()[0].endswith(": 2 shops, 1 categories, 0 coupons, 0 offers."),
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
        for command in ("build", "rollback", "prune", "verify"):
            done = operator.run(command, "--wait", "0")
            assert done.exit_code == 4
            assert re.search(r"another job has the lease of .*: prune", done.stderr), done.stderr
        followed = operator.run("follow", "--catalogue", str(operator.catalogue), "--once")
        assert (followed.exit_code, followed.stderr.startswith("Following ended: another job has the")) == (4, True)
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
def test_follow_once_ends_with_1_where_changes_were_refused_and_names_their_file(operator: Operator) -> None:
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
            "missing_changes": None, "reconciled": {"checked": 0, "found": 0, "repaired": 0},
        },
    )  # fmt: skip
    assert "zqcanaryzq" not in done.output
    letters = operator.folder / "index.state" / "dead-letters.ndjson"
    reason = "changes.ndjson:3: op must be one of 'upsert' or 'delete'"
    message = f"1 changes were refused, first {reason}: see {letters} for all."
    problem = {"code": "bad_input", "message": message}
    assert json.loads(done.stderr.splitlines()[-1]) == {"error": problem}
    again = operator.run("follow", "--catalogue", str(operator.catalogue), "--once")
    assert again.exit_code == 0
    assert (letters.stat().st_mode & 0o777, "zqcanaryzq" in letters.read_text()) == (0o600, True)
    details = f"1 of the older ones were known as they are; first refused: {reason}"
    built = operator.build(LAMP)
    assert f"Changes: 0 applied, 2 older, 1 refused ({details}).\n" in built.stdout


def test_follow_without_a_published_generation_is_exit_code_1(operator: Operator) -> None:
    operator.write(LAMP)
    done = operator.run("follow", "--catalogue", str(operator.catalogue))
    assert done.exit_code == 1
    assert "Following ended: no generation is live: build one first" in done.stderr


@pytest.mark.rule("V1")
@pytest.mark.parametrize("command", ["build", "rollback", "verify"])
def test_a_file_of_changes_that_is_named_and_missing_is_exit_code_1(operator: Operator, command: str) -> None:
    operator.write(LAMP)
    missing = str(operator.folder / "typo.ndjson")
    done = operator.run(command, "--catalogue", str(operator.catalogue), "--changes", missing)
    assert (done.exit_code, f"there is no file of changes at {missing}" in done.stderr) == (1, True)


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
    done = forked.run(
        [*command, "--data-dir", str(operator.folder / "index")],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        text=True, timeout=60, check=True,
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
    with forked.start(
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
    done = forked.run(
        [*command, "--data-dir", str(operator.folder / "index")],
        env=environment, text=True, timeout=60, check=True,
    )  # fmt: skip
    logged, said = done.stderr.splitlines()[-1].split(" ", 1)
    assert start <= datetime.strptime(logged, "%Y-%m-%dT%H:%M:%S%z") <= datetime.now(UTC)
    assert said == "INFO 1 changes applied, 0 older, 0 refused; 3 documents written, 0 removed"


@pytest.mark.rule("G3")
def test_following_once_is_exit_code_7_until_a_build_where_a_file_of_changes_is_gone(operator: Operator) -> None:
    operator.build(LAMP)
    operator.change(op="upsert", type="shops", record=BOOK, version=2)
    follow = ("follow", "--catalogue", str(operator.catalogue), "--once")
    assert operator.run(*follow).exit_code == 0
    assert operator.run_json("status")["missing_changes"] is None
    operator.change(op="upsert", type="shops", record=BOOK, version=3)
    (operator.catalogue / "changes.ndjson").unlink()
    operator.change(op="upsert", type="shops", record=VASE, version=1)
    missing = "hanges are missing: an unknown number of bytes, written until "
    for _ in range(2):
        done = operator.run(*follow)
        assert (done.exit_code, f"\nC{missing}" in f"\n{done.stderr}") == (7, True)
        as_json = operator.run(*follow, "--json")
        assert json.loads(as_json.stdout)["missing_changes"]["bytes"] is None
        assert json.loads(as_json.stderr.splitlines()[-1])["error"]["code"] == "incomplete"
        assert f"\nC{missing}" in operator.run("status").stdout
    written = datetime.now(UTC).timestamp() + 1
    operator.write(LAMP, BOOK)
    os.utime(operator.catalogue / "shops.ndjson", (written, written))
    assert operator.run("build", "--catalogue", str(operator.catalogue)).exit_code == 0
    assert (operator.run(*follow).exit_code, operator.run_json("status")["missing_changes"]) == (0, None)


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
