"""`shop-directory status`, as an operator types it each morning: all is well, and each thing that can be wrong."""

import asyncio
import json
import shutil
from collections import namedtuple
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.generations import FollowerStatus, MissingChanges, Operations
from indexer.sinks.embedded.sink import EmbeddedSink
from service.limits.policy import QuotaClass
from service.reports.sqlite import SqliteReports
from shop_directory.status import ago, disk
from tests.people.commands.world import Done, run
from tests.rules.reports.stores import report
from tests.support.catalogues import shop, write_catalogue
from tests.support.served import get
from tests.support.worlds import limited

NOW: Final = datetime.now(UTC)


def at(ago: timedelta) -> str:
    return (NOW - ago).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an operator works: a catalogue of two shops, and its index."""
    write_catalogue(tmp_path / "shops.ndjson", [shop("Reed", id="s1"), shop("Lamp", id="s2")])
    built = run(tmp_path, "index", "build", "--catalogue", "shops.ndjson")
    assert built.code == 0, built.err
    return tmp_path


def morning(folder: Path, *words: str, **variables: str) -> tuple[Done, dict[str, Any]]:
    done = run(folder, "status", "--json", *words, **variables)
    return done, json.loads(done.out)


def wrong(done: Done) -> tuple[int, str]:
    return done.code, done.error["error"]["message"]


def write_operations(folder: Path, follower: FollowerStatus | None, missing: MissingChanges | None) -> None:
    with closing(EmbeddedSink(folder / "var" / "index")) as sink:
        live = sink.live()
        assert live is not None
        with closing(sink.edit(live.generation)) as editor:
            editor.write_operations(Operations((), follower, missing))


def letters(folder: Path, *lines: dict[str, Any]) -> None:
    path = folder / "var" / "index.state" / "dead-letters.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"at": "cut', encoding="utf-8")


def test_a_good_morning_is_one_screen_without_a_problem(folder: Path) -> None:
    write_operations(folder, FollowerStatus("file", "9", 0, at(timedelta(seconds=5)), at(timedelta(seconds=5))), None)
    hidden = run(folder, "index", "hide", "s2")
    assert hidden.code == 0, hidden.err
    letters(folder, {"at": at(timedelta(days=8)), "reason": "name is missing", "document": "Hidden Name"})
    done, found = morning(folder)
    assert (done.code, done.err, found["problems"]) == (0, "", [])
    assert found["index"]["counts"] == {"shops": 1, "categories": 1, "coupons": 0, "offers": 0, "facts": 1}
    assert (found["follower"]["source"], found["follower"]["waiting"]) == ("file", 0)
    assert (found["hidden_by_mark"], found["rechecks"], found["missing_changes"]) == (["s2"], None, None)
    assert found["refused_rows"] == {"days": 7, "count": 0, "reasons": {}, "skipped": {"records": 0, "reasons": {}}}
    assert found["disk_of_the_index"][0]["free_bytes"] > 0
    shown = run(folder, "status")
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert [line.split("  ")[0] for line in lines if not line.startswith(" ")] == [
        "Index", "Follower", "Missing changes", "Refused rows", "Hidden by mark", "Disk of the index", "Re-checks",
        "Quotas", "Not found", "Disk of reports",
    ]  # fmt: skip


def test_nothing_live_is_wrong(tmp_path: Path) -> None:
    done, found = morning(tmp_path)
    assert (done.code, found["index"]) == (1, None)
    assert "nothing is live in the embedded index" in wrong(done)[1]
    assert list(tmp_path.iterdir()) == []


def test_rows_refused_this_week_are_counted_by_reason_and_their_values_are_not_shown(folder: Path) -> None:
    letters(
        folder,
        *(
            {"at": at(timedelta(days=day)), "reason": "name is missing", "document": {"id": "Quillomere"}}
            for day in range(3)
        ),
        {"at": at(timedelta(hours=1)), "reason": "mapper_parsing_exception", "document": "Quillomere"},
        {"at": at(timedelta(days=9)), "reason": "old", "document": "Quillomere"},
        {"reason": 7},
    )
    done, found = morning(folder)
    assert found["refused_rows"] == {
        "days": 7,
        "count": 4,
        "reasons": {"name is missing": 3, "mapper_parsing_exception": 1},
        "skipped": {"records": 0, "reasons": {}},
    }
    assert wrong(done) == (1, "Wrong: 4 rows were refused in 7 days.")
    assert "Quillomere" not in done.out + done.err + run(folder, "status").out


def test_records_that_the_build_skipped_are_counted_by_reason_until_a_build_without_them(folder: Path) -> None:
    whole = (folder / "shops.ndjson").read_text(encoding="utf-8")
    bad = [
        shop("Quillomere", id=f"b{at}", categories=[("lighting", "Lighting")] * at + [("No Slug", "No")])
        for at in range(3)
    ]
    write_catalogue(folder / "shops.ndjson", [*map(json.loads, whole.splitlines()), *bad, shop("Reed", id="s1")])
    built = run(folder, "index", "build", "--catalogue", "shops.ndjson", "--skip-invalid")
    assert built.code == 0, built.err
    done, found = morning(folder)
    skipped = found["refused_rows"]["skipped"]
    assert (skipped["records"], sorted(skipped["reasons"].values())) == (4, [1, 3])
    assert "id is already the key of another line, and no version says which of them is newer" in skipped["reasons"]
    assert wrong(done) == (1, "Wrong: the build skipped 4 bad records.")
    assert "Quillomere" not in done.out + done.err + run(folder, "status").out
    (folder / "shops.ndjson").write_text(whole, encoding="utf-8")
    assert run(folder, "index", "build", "--catalogue", "shops.ndjson").code == 0
    assert morning(folder)[0].code == 0


def test_without_its_state_nothing_is_known_of_skipped_records(folder: Path) -> None:
    (state,) = (folder / "var" / "index.state").glob("*.sqlite")
    state.unlink()
    assert morning(folder)[1]["refused_rows"]["skipped"] is None


def test_missing_changes_and_a_silent_follower_are_wrong(folder: Path) -> None:
    write_operations(folder, None, MissingChanges(20, "2026-11-01T00:00:00Z"))
    done, found = morning(folder)
    assert (done.code, found["missing_changes"]) == (7, {"bytes": 20, "before": "2026-11-01T00:00:00Z"})
    old = at(timedelta(days=3))
    write_operations(folder, FollowerStatus("sql", None, None, None, old), MissingChanges(20, "2026-11-01T00:00:00Z"))
    done, found = morning(folder)
    code, message = wrong(done)
    assert (code, [one["code"] for one in found["problems"]]) == (3, ["unavailable", "incomplete"])
    assert message.startswith("Wrong: no follower has reported for 3 d; changes are missing: 20 bytes")


def test_waiting_rechecks_and_those_given_up_are_told(folder: Path) -> None:
    async def queue() -> None:
        reports = SqliteReports(folder / "var" / "reports.sqlite", max_deliveries=1)
        await reports.append(report("s1"))
        for _ in range(2):
            await reports.claim("desk", 1, 0)
        await reports.append(report("s2"))
        await reports.close()

    asyncio.run(queue())
    done, found = morning(folder)
    assert {name: found["rechecks"][name] for name in ("depth", "dead_letters")} == {"depth": 1, "dead_letters": 1}
    assert found["rechecks"]["oldest_reported_at"]
    assert wrong(done) == (1, "Wrong: 1 re-checks were given up: shop-directory rechecks list names them.")


def test_stores_and_engines_that_do_not_answer_are_wrong_and_the_others_are_shown(folder: Path) -> None:
    done, found = morning(folder, "--engine", "opensearch", SHOP_DIRECTORY_OPENSEARCH_URL="http://127.0.0.1:9")
    assert (done.code, found["index"], found["rechecks"]) == (3, None, None)
    assert len(found["disk_of_the_index"]) == 1
    redis = {"SHOP_DIRECTORY_REPORTS": "redis", "SHOP_DIRECTORY_REDIS_URL": "redis://127.0.0.1:9/0"}
    done, found = morning(folder, **redis)
    assert wrong(done) == (3, "Wrong: re-checks are unknown: The report queue does not answer.")
    assert found["index"]["counts"]["shops"] == 2


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    quota = QuotaClass(reads=9, suggest=2, reports=0)
    with limited(tmp_path / "service", quota_anonymous=quota, ops_key="operations-key-1") as base:
        yield base


def test_a_running_service_says_what_its_quotas_refused(folder: Path, service: str) -> None:
    assert [get(service, "/suggest?q=a").status for _ in range(5)] == [200, 200, 429, 429, 429]
    done, found = morning(folder, "--url", f"{service}/", SHOP_DIRECTORY_OPS_KEY="operations-key-1")
    assert (done.code, found["quotas"]) == (0, {"refused": {"suggest": 3}})
    done, found = morning(folder, "--url", service, SHOP_DIRECTORY_OPS_KEY="another-key-1234")
    assert (done.code, found["quotas"]) == (3, None)
    assert "401" in wrong(done)[1]
    for url in ("http://127.0.0.1:9", "shops", "http://["):
        assert morning(folder, "--url", url)[0].code == 3


def test_a_nearly_full_disk_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")  # noqa: PYI024
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(100_000_000_000, 96_000_000_000, 4_000_000_000))
    section = disk("Disk", [tmp_path / "not" / "there", tmp_path])
    assert section.lines == (f"4.0 GB (4%) free at {tmp_path}",)
    assert section.problems == ((3, f"the disk of {tmp_path} is 96% full"),)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (7_200, "2 h"), (90_061, "1 d 1 h"), (-5, "0 s")],
)
def test_times_have_their_two_largest_units(seconds: float, text: str) -> None:
    assert ago(seconds) == text


@pytest.mark.parametrize("words", [("index", "status"), ("status",)])
def test_looking_removes_no_file_that_a_running_job_writes(folder: Path, words: tuple[str, ...]) -> None:
    (live,) = (folder / "var" / "index" / "generations").iterdir()
    written = live / ".tmp-of-a-follower"
    written.touch()
    assert run(folder, *words).code == 0
    assert written.exists()
