"""The catalogue on disk: what is read, what is skipped and reported, and what makes it unusable, with what to do."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from indexer.__main__ import index
from indexer.records.problems import CatalogueError, Problem, ProblemLog
from indexer.records.related import RECORDS
from indexer.records.shop import VERSION, Order
from indexer.sources.changes import ChangeFile
from indexer.sources.lines import MAX_LINE
from indexer.sources.ndjson import NdjsonCatalogue, refuse_other_formats
from indexer.sources.protocol import Change, ChangeBatch, Source
from tests.support.catalogues import shop, write_catalogue_directory

ARRAY = json.dumps([shop("Lamp")])
UNKNOWN = "is not a known field (--lenient passes over unknown fields)"


@pytest.mark.parametrize("text", ["name,url\nA,a.example\n", '\ufeff"Id";"Name"\n1;A\n', "Name\tX\nA\tB\n"])
@pytest.mark.parametrize("name", ["shops.csv", "shops.ndjson", "list.txt"])
def test_a_csv_leads_to_the_command_that_imports_it(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(index, ["build", "--catalogue", str(path), "--data-dir", str(tmp_path / "index")])
    advice = f"make a catalogue of it by shop-directory catalogue from-csv {path} DIRECTORY"
    assert (done.exit_code, done.stderr) == (1, f"Nothing was published: {path} is a CSV: {advice}.\n")


@pytest.mark.parametrize(
    "text",
    [
        ARRAY,
        f" \n{ARRAY}",
        "[\n  {\n",
        json.dumps({"shops": []}, indent=2),
        '["https://a.example"]',
        '{"features":[\n{}]}',
    ],
)
def test_one_json_document_is_to_be_written_as_one_object_per_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shops.json"
    path.write_text(text)
    advice = f"make a catalogue of it by shop-directory catalogue from-csv {path} DIRECTORY"
    with pytest.raises(CatalogueError) as refused:
        NdjsonCatalogue(path)
    assert str(refused.value) == f"{path} is one JSON document, and a catalogue has one object per line: {advice}"


def test_a_directory_with_such_a_file_instead_of_shops_says_so(tmp_path: Path) -> None:
    (tmp_path / "shops.csv").write_text("name,url\n")
    with pytest.raises(CatalogueError, match=r"shops\.csv is a CSV: make a catalogue of it by"):
        NdjsonCatalogue(tmp_path)
    (tmp_path / "shops.csv").rename(tmp_path / "shops.ndjson.gz")
    (tmp_path / "shops.ndjson.gz").write_bytes(gzip.compress(ARRAY.encode()))
    with pytest.raises(CatalogueError, match=r"shops\.ndjson\.gz is one JSON document"):
        NdjsonCatalogue(tmp_path)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("coupons", b"code,shop_id\nA,1\n", "is a CSV: make a catalogue of it by shop-directory catalogue from-csv "),
        ("coupons", b"PK\x03\x04...", r"is a workbook: make a .*coupons\.ndjson DIRECTORY --kind coupons$"),
        ("redirects", b"shop_id,name\n1,b\n", r"is a CSV: write one JSON object per line \(NDJSON\)$"),
    ],
)
def test_a_csv_or_workbook_of_another_kind_leads_to_its_import_if_there_is_one(
    tmp_path: Path, kind: str, text: bytes, message: str
) -> None:
    (tmp_path / "shops.ndjson").write_text(json.dumps(shop("Lamp")))
    (tmp_path / f"{kind}.ndjson").write_bytes(text)
    with pytest.raises(CatalogueError, match=message):
        NdjsonCatalogue(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "\n", json.dumps(shop("Lamp")), '{"id": "broken, name', "[[[", "[]", "no json, at all", '"name"']
)
def test_what_may_be_ndjson_with_a_bad_line_is_left_to_its_reading(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shops.ndjson"
    path.write_text(text)
    refuse_other_formats(path)
    assert NdjsonCatalogue(tmp_path).kinds() == ("shops",)


def _line(name: str, **fields: Any) -> bytes:  # noqa: ANN401 - JSON values
    return json.dumps(shop(name, **fields), ensure_ascii=False).encode() + b"\n"


def _read(path: Path, *, lenient: bool = False) -> tuple[list[tuple[int, str]], list[Problem], int]:
    """Lines and names of the shops, the problems, and the bytes gone through."""
    log, steps = ProblemLog(), list[int]()
    source = NdjsonCatalogue(path, lenient=lenient)
    shops = [(line, record.name) for line, record in source.records("shops", log, steps.append)]
    assert log.count == len(log.listed)
    return shops, log.listed, sum(steps)


def _problems(content: bytes, path: Path, *, lenient: bool = False) -> tuple[list[str], list[str]]:
    path.write_bytes(content)
    shops, problems, _ = _read(path, lenient=lenient)
    return [name for _, name in shops], [str(problem) for problem in problems]


def test_a_single_file_is_a_catalogue_of_shops_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(_line("A") + _line("B"))
    assert _read(path) == ([(1, "A"), (2, "B")], [], path.stat().st_size)
    assert NdjsonCatalogue(path).name("shops") == "mine.json"
    assert NdjsonCatalogue(path).size("shops") == path.stat().st_size


@pytest.mark.parametrize("name", ["shops.ndjson", "shops.ndjson.gz"])
def test_a_directory_needs_shops_only_and_may_hold_every_type_and_other_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(_line("A")) if name.endswith(".gz") else _line("A"))
    for kind in (*list(RECORDS)[1:], "changes"):
        (tmp_path / f"{kind}.ndjson").write_bytes(b"")
    (tmp_path / "README.md").write_text("Our shops.")
    (tmp_path / "old.ndjson").mkdir()
    assert _read(tmp_path)[:2] == ([(1, "A")], [])
    assert NdjsonCatalogue(tmp_path).name("shops") == name
    assert NdjsonCatalogue(tmp_path).kinds() == (
        "shops", "coupons", "offers", "shipping", "policies", "trust", "affiliate_programs", "redirects",
        "resource_accounts", "categories",
    )  # fmt: skip


def test_a_file_of_no_known_type_is_refused_unless_lenient(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson").write_bytes(_line("A"))
    (tmp_path / "cupons.ndjson").write_bytes(b"")
    with pytest.raises(CatalogueError, match=r"cupons\.ndjson is no known type \(shops, coupons, .*--lenient"):
        NdjsonCatalogue(tmp_path)
    assert _read(tmp_path, lenient=True)[0] == [(1, "A")]


def test_a_type_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson").write_bytes(_line("A"))
    (tmp_path / "shops.ndjson.gz").write_bytes(gzip.compress(_line("B")))
    with pytest.raises(CatalogueError, match=r"shops\.ndjson and shops\.ndjson\.gz hold the same type"):
        NdjsonCatalogue(tmp_path)


def test_a_directory_without_shops_and_no_directory_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"holds no shops\.ndjson or shops\.ndjson\.gz"):
        NdjsonCatalogue(tmp_path)
    with pytest.raises(CatalogueError, match=r"there is no catalogue at .*gone"):
        NdjsonCatalogue(tmp_path / "gone")


def test_a_zipped_file_is_read_by_its_own_bytes_and_a_million_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "mine.ndjson.gz"
    path.write_bytes(gzip.compress(_line("A") + b"\n" * 1_000_000 + _line("緑")))
    assert _read(path) == ([(1, "A"), (1_000_002, "緑")], [], path.stat().st_size)


def test_a_line_beyond_a_mebibyte_is_reported_and_passed_over_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "shops.ndjson"
    frame = len(_line("B", source="")) - 1
    at_the_limit, beyond = (_line("B", source="s" * (MAX_LINE - frame + more)) for more in (0, 1))
    far_beyond = b"[" * (3 * MAX_LINE + 5) + b"\n"
    path.write_bytes(_line("A") + beyond + far_beyond + _line("C"))
    assert len(beyond) == MAX_LINE + 2
    assert _read(path) == (
        [(1, "A"), (4, "C")],
        [Problem("shops.ndjson", line, None, f"the line is longer than {MAX_LINE} bytes") for line in (2, 3)],
        path.stat().st_size,
    )
    path.write_bytes(at_the_limit + b"x" * (MAX_LINE + 1))
    assert _problems(path.read_bytes(), path)[1] == [
        "shops.ndjson:1: source is longer than 2048 characters",
        f"shops.ndjson:2: the line is longer than {MAX_LINE} bytes",
    ]


def test_versions_and_times_are_not_mixed_in_one_file(tmp_path: Path) -> None:
    content = _line("A") + _line("B", version=1) + _line("C", updated_at="2031-05-06T07:08:09Z") + _line("D", version=2)
    assert _problems(content, tmp_path / "shops.ndjson") == (
        ["A", "B", "D"],
        ["shops.ndjson:3: updated_at must not be mixed with version in one file"],
    )


def test_being_lenient_excuses_no_wrong_value(tmp_path: Path) -> None:
    reported = _problems(_line("A", popularity=-1, colour="red"), tmp_path / "shops.ndjson", lenient=True)
    assert reported == ([], ["shops.ndjson:1: popularity must be at least 0"])


def test_a_file_that_cannot_be_read_is_reported_with_its_location(tmp_path: Path) -> None:
    path = tmp_path / "shops.ndjson"
    path.write_bytes(_line("A"))
    source = NdjsonCatalogue(path)
    path.unlink()
    with pytest.raises(CatalogueError, match=r"shops\.ndjson cannot be read: No such file"):
        list(source.records("shops", ProblemLog(), lambda _: None))


@pytest.mark.rule("G3")
def test_the_changes_of_a_directory_are_in_a_file_that_may_appear_later(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson").write_bytes(_line("A"))
    source: Source = NdjsonCatalogue(tmp_path, lenient=True)
    changes = source.changes()
    assert changes is not None
    with source.reading() as position:
        assert (source.unit, position) == ("bytes", None)
    nothing = changes.read(None, 9)
    assert nothing == ChangeBatch((), (), nothing.position, more=False)
    line = {"op": "delete", "type": "shops", "key": "a", "version": 1, "unknown": 1}
    (tmp_path / "changes.ndjson").write_text(json.dumps(line) + "\n")
    deleted = Change("shops", "a", Order(VERSION, 1), None, "changes.ndjson:1")
    assert changes.read(None, 9).changes == (deleted,)
    (refused,) = ChangeFile(tmp_path / "changes.ndjson").read(None, 9).refused
    assert refused.reasons == (f"unknown {UNKNOWN}",)
    assert [line for line, _ in source.records("shops", ProblemLog(), lambda _: None)] == [1]


def test_a_single_file_of_shops_has_no_changes(tmp_path: Path) -> None:
    path = tmp_path / "shops.ndjson"
    path.write_bytes(_line("A"))
    (tmp_path / "changes.ndjson").write_bytes(b"")
    assert NdjsonCatalogue(path).changes() is None


@pytest.mark.rule("G2")
@pytest.mark.parametrize("name", ["coupons.ndjson", "coupons.ndjson.gz", "shops.ndjson", "changes.ndjson"])
@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_a_file_that_can_not_be_read_is_refused_by_name_and_never_counts_as_absent(
    tmp_path: Path, name: str, kind: str
) -> None:
    write_catalogue_directory(tmp_path / "catalogue", shops=[shop("Lamp")])
    path = tmp_path / "catalogue" / name
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(tmp_path / "nowhere.ndjson")
    elif kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    reason = "leads nowhere" if kind == "link" else "is not a regular file"
    with pytest.raises(CatalogueError, match=f"^{re.escape(str(path))} {reason}: mend or remove it$"):
        NdjsonCatalogue(tmp_path / "catalogue", lenient=True)
