"""The command: exit codes, what goes to standard output and to standard error, and no value of a bad record."""

import json
import socket
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import Result

from indexer.sinks.embedded.sink import EmbeddedSink
from tests.support.catalogues import coupon, shop, write_catalogue, write_catalogue_directory
from tests.unit.indexer.commands.index_operator import Operator

CANARY: Final = "zqcanaryzq"


def _run(tmp_path: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Result:
    return Operator(tmp_path).run("build", *arguments, **(environment or {}))


def _catalogue(tmp_path: Path, *shops: Mapping[str, Any]) -> str:
    return str(write_catalogue(tmp_path / "shops.ndjson", shops))


@pytest.mark.rule("G1")
def test_a_build_is_exit_code_0_and_prints_the_generation_and_the_numbers(tmp_path: Path) -> None:
    path = _catalogue(tmp_path, shop("A", "a.internal"), shop("B", "b.internal", visibility="removed"))
    done = _run(tmp_path, "--catalogue", path)
    live = EmbeddedSink(tmp_path / "index").live()
    assert (done.exit_code, live is not None) == (0, True)
    published, read = done.stdout.splitlines()
    assert published.startswith(f"Published generation {live.generation if live else ''} in ")
    assert published.endswith(" s: 1 shops, 1 categories, 0 coupons, 0 offers, 1 facts.")
    assert read == ("Read 2 shops: 1 not public, 0 superseded, 0 without their domain; 0 bad records skipped.")
    assert done.stderr.startswith("Reading shops: ")


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
            "notes": ["shops.ndjson:2: left out, its domain belongs to the shop of line 1"],
            "removed_generations": [],
            "restarts": 0,
        },
    )


def test_without_a_catalogue_the_invented_sample_is_built(tmp_path: Path) -> None:
    done = _run(tmp_path, "--json")
    summary = json.loads(done.stdout)
    assert (done.exit_code, summary["not_public"], summary["skipped_invalid"]) == (0, 20, 0)
    assert summary["counts"]["shops"] == summary["read"]["shops"] - 20 - summary["lost_domain"]


def test_each_type_that_was_read_is_reported_with_how_many_records_have_no_public_shop(tmp_path: Path) -> None:
    path = write_catalogue_directory(
        tmp_path / "catalogue", shops=[shop("A", id="s1")], coupons=[coupon("A", "s1"), coupon("B", "unknown")]
    )
    done = _run(tmp_path, "--catalogue", str(path))
    assert (done.exit_code, done.stdout.splitlines()[2:]) == (0, ["Read 2 coupons: 1 of no public shop."])


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


@pytest.mark.rule("V1.silent")
def test_bad_records_are_exit_code_1_and_reported_without_any_of_their_values(tmp_path: Path) -> None:
    bad = shop(
        f"{CANARY}\x07",
        CANARY,
        id=f"{CANARY}!",
        categories=[(CANARY.upper(), CANARY)],
        countries=[CANARY],
        popularity=CANARY,
        aliases=[f"{CANARY}\u202e"],
        checkout_hosts=[CANARY],
        visibility=CANARY,
        source=f"{CANARY}\x00",
        version=CANARY,
    )
    done = _run(tmp_path, "--catalogue", _catalogue(tmp_path, shop("A"), bad))
    problems = [line for line in done.stderr.splitlines() if line.startswith("shops.ndjson:2: ")]
    assert (done.exit_code, done.stdout) == (1, "")
    assert [line.split()[1] for line in problems] == [
        "version", "id", "name", "domain", "categories.0.slug", "countries", "popularity", "aliases.0",
        "checkout_hosts.0", "visibility", "source",
    ]  # fmt: skip
    assert done.stderr.endswith(
        "Nothing was published: 1 bad records: mend them, or build without them by --skip-invalid.\n"
    )
    assert CANARY not in done.output.lower()
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["indexer.lock"]
    assert [path.name for path in (tmp_path / "index.state").iterdir()] == ["place"]


def test_more_than_a_hundred_problems_are_counted_and_a_hundred_listed(tmp_path: Path) -> None:
    path = _catalogue(tmp_path, shop("A"), *(shop(f"B{number}", popularity=-1) for number in range(103)))
    done = _run(tmp_path, "--catalogue", path, "--skip-invalid")
    listed = [line for line in done.stderr.splitlines() if line.endswith("popularity must be at least 0")]
    assert (done.exit_code, len(listed)) == (0, 100)
    assert "... and 3 more problems\n" in done.stderr
    assert "103 bad records skipped." in done.stdout


def test_unknown_fields_are_passed_over_when_lenient(tmp_path: Path) -> None:
    path = _catalogue(tmp_path, shop("A", colour="red"))
    assert [_run(tmp_path, "--catalogue", path, *more).exit_code for more in ((), ("--lenient",))] == [1, 0]


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


@pytest.mark.parametrize(
    ("name", "value"), [("SHOP_DIRECTORY_INDEX_PREFIX", "Not A Prefix"), ("SHOP_DIRECTORY_OPENSEARCH_SHARDS", "0")]
)
def test_wrong_usage_is_exit_code_2_and_names_the_setting(tmp_path: Path, name: str, value: str) -> None:
    done = _run(tmp_path, environment={name: value})
    assert (done.exit_code, done.stdout, name in done.stderr) == (2, "", True)
    assert not (tmp_path / "index").exists()


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
