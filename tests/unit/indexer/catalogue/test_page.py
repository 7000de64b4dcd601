"""What describes the catalogue is true: docs/catalogue.md, the JSON Schemas, and the starter of `catalogue init`."""

import json
import re
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from typer.testing import CliRunner, Result

from index_mappings.countries import GROUPS
from indexer.__main__ import index
from indexer.catalogue.new_catalogue import CATEGORIES, CATEGORY_SETS, STARTER, category_records
from indexer.catalogue.schema import CHANGE, KINDS, record_schema
from indexer.commands.catalogue import catalogue
from indexer.commands.parts import SAMPLE
from indexer.records.faults import RefusedRecordError
from indexer.records.related import RECORDS
from indexer.records.shop import Record
from indexer.sources.changes import StatedChange, read_change
from indexer.sources.lines import Line
from tests.support.real.sources import REPOSITORY
from tests.support.sample import records

PAGE: Final = (REPOSITORY / "docs" / "catalogue.md").read_text(encoding="utf-8")
_ROW: Final = re.compile(r"^\| `(\w+)` \| ([^|]+) \| (.+?) \|(?: (.*) \||)$", re.MULTILINE)
_CHANGES: Final = "changes"
# The files of `catalogue init --categories shops`.
_SET: Final = ["categories.LICENSE", CATEGORIES]


def sections() -> dict[str, str]:
    """The text below each title, by the title; what comes before the first one is called `start`."""
    titles = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return {"start": titles[0], **dict(zip(titles[1::2], titles[2::2], strict=True))}


def examples(section: str) -> str:
    return "".join(re.findall(r"^```ndjson\n(.*?)^```$", sections()[section], re.MULTILINE | re.DOTALL))


def literals(annotation: object) -> set[str]:
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {value for info in annotation.model_fields.values() for value in literals(info.annotation)}
    return {value for part in get_args(annotation) for value in literals(part)}


def write_records(folder: Path) -> None:
    for kind in RECORDS:
        (folder / f"{kind}.ndjson").write_text(examples(kind), encoding="utf-8")


def run(folder: Path, *words: str) -> Result:
    """Run a command of the indexer on the catalogue and the index of a folder."""
    given = [*words, "--catalogue", str(folder / "catalogue"), "--data-dir", str(folder / "index"), "--json"]
    return CliRunner().invoke(index, given)


@pytest.mark.parametrize(("kind", "model"), [*RECORDS.items(), (_CHANGES, StatedChange)])
def test_a_table_has_exactly_the_fields_of_its_records_and_which_are_required(
    kind: str, model: type[BaseModel]
) -> None:
    common = Record.model_fields if kind in RECORDS else {}
    documented = {field: required.startswith("yes") for field, required, _, _ in _ROW.findall(sections()[kind])}
    assert documented == {
        field: info.is_required() for field, info in model.model_fields.items() if field not in common
    }
    assert [field for field, *_ in _ROW.findall(sections()["Rules of all files"])] == list(Record.model_fields)


@pytest.mark.parametrize("kind", RECORDS)
def test_a_table_names_every_value_that_a_field_of_fixed_values_may_have(kind: str) -> None:
    rows = {field: f"{value} {meaning}" for field, _, value, meaning in _ROW.findall(sections()[kind])}
    fields = RECORDS[kind].model_fields
    silent = {
        field: missing
        for field, row in rows.items()
        if (missing := {value for value in literals(fields[field].annotation) if f"`{value}`" not in row})
    }
    assert silent == {}


def test_the_groups_of_destinations_are_those_that_are_known() -> None:
    (row,) = [meaning for field, *_, meaning in _ROW.findall(sections()["shipping"]) if field == "destinations"]
    assert set(re.findall(r"`([A-Z_]+)`", row)) == {*GROUPS, "WORLDWIDE"}


def test_the_records_of_the_page_are_those_of_the_starter() -> None:
    assert {kind: examples(kind) for kind in RECORDS} == {
        kind: (STARTER / f"{kind}.ndjson").read_text(encoding="utf-8") for kind in RECORDS
    }


@pytest.mark.rule("G3")
def test_every_record_of_the_page_is_built_and_every_change_of_it_is_applied(tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    write_records(catalogue)
    built = json.loads(run(tmp_path, "build").stdout)
    read = {kind: len(examples(kind).splitlines()) for kind in RECORDS}
    assert (built["read"], set(built["left_out"].values()), built["notes"]) == (read, {0}, [])
    (catalogue / "changes.ndjson").write_text(examples(_CHANGES), encoding="utf-8")
    followed = run(tmp_path, "follow", "--once")
    summary = json.loads(followed.stdout)
    changes = [json.loads(line) for line in examples(_CHANGES).splitlines()]
    assert (followed.exit_code, summary["applied"], summary["older"], summary["refused"]) == (0, len(changes), 0, 0)
    assert {change["op"] for change in changes} == {"upsert", "delete"}
    assert {change["type"] for change in changes if change["op"] == "delete"} == set(RECORDS)


PUBLISHED: Final = REPOSITORY / "docs" / "catalogue.schema.json"
SHOP: Final = {
    "id": "s1", "name": "S", "domain": "s.example", "categories": [{"slug": "a", "name": "A"}], "visibility": "public",
}  # fmt: skip
CHANGES: Final[dict[str, tuple[dict[str, Any], bool]]] = {
    "an upsert": ({"op": "upsert", "type": "shops", "record": SHOP, "version": 1}, True),
    "a version in the record": ({"op": "upsert", "type": "shops", "record": {**SHOP, "version": 1}}, True),
    "a delete": ({"op": "delete", "type": "trust", "key": "s1/registrar", "version": 1}, True),
    "a delete by time": ({"op": "delete", "type": "shops", "key": "s1", "updated_at": "2031-05-06T07:08:09Z"}, True),
    "no version": ({"op": "delete", "type": "shops", "key": "s1"}, False),
    "an upsert without a record": ({"op": "upsert", "type": "shops", "version": 1}, False),
    "an upsert with a key": ({"op": "upsert", "type": "shops", "record": SHOP, "key": "s1", "version": 1}, False),
    "a delete with a record": ({"op": "delete", "type": "shops", "key": "s1", "record": SHOP, "version": 1}, False),
    "a delete without a key": ({"op": "delete", "type": "shops", "version": 1}, False),
    "an unknown kind": ({"op": "delete", "type": "shop", "key": "s1", "version": 1}, False),
    "a record of another kind": ({"op": "upsert", "type": "offers", "record": SHOP, "version": 1}, False),
    "an upsert with a time of its own": (
        {"op": "upsert", "type": "shops", "record": SHOP, "version": 1, "updated_at": "2031-05-06T07:08:09Z"}, False,
    ),
}  # fmt: skip


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_the_published_file_is_what_the_command_prints() -> None:
    printed = CliRunner().invoke(catalogue, ["schema"]).stdout
    assert printed == PUBLISHED.read_text(encoding="utf-8"), "write it again by `make schema`"


@pytest.mark.parametrize("kind", RECORDS)
def test_the_schema_of_a_kind_stands_alone_and_takes_every_record_of_the_sample_and_the_starter(kind: str) -> None:
    judge = Draft202012Validator(record_schema(kind))
    records = [record for folder in (SAMPLE, STARTER) for record in lines(folder / f"{kind}.ndjson")]
    assert [record for record in records if not judge.is_valid(record)] == []
    assert not judge.is_valid({**records[0], "colour": "red"})


@pytest.mark.parametrize(("change", "good"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_valid_exactly_when_the_indexer_takes_it(change: dict[str, Any], *, good: bool) -> None:
    assert Draft202012Validator(record_schema(CHANGE)).is_valid(change) is good
    try:
        taken = bool(read_change(Line(1, json.dumps(change).encode(), too_long=False), "in"))
    except RefusedRecordError:
        taken = False
    assert taken is good


def test_one_kind_is_printed_by_its_name_and_an_unknown_one_is_wrong_usage() -> None:
    runner = CliRunner()
    one = runner.invoke(catalogue, ["schema", "coupons", "--json"])
    assert (one.exit_code, json.loads(one.stdout), one.stdout.count("\n")) == (0, record_schema("coupons"), 1)
    unknown = runner.invoke(catalogue, ["schema", "coupon"])
    assert (unknown.exit_code, unknown.stdout, unknown.stderr) == (
        2, "", f"There is no such kind: name one of {', '.join(KINDS)}.\n",
    )  # fmt: skip


def test_init_writes_one_file_of_each_kind_and_a_readme_that_names_them(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    done = CliRunner().invoke(catalogue, ["init", str(folder), "--json"])
    files = json.loads(done.stdout)["files"]
    assert (done.exit_code, files) == (0, sorted([*(f"{kind}.ndjson" for kind in RECORDS), "README.md"]))
    assert sorted(path.name for path in folder.iterdir()) == files
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert [kind for kind in RECORDS if f"| `{kind}.ndjson` |" not in readme] == []


def test_init_with_the_categories_of_shops_writes_their_file_and_its_licence_and_a_build_takes_it(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "catalogue"
    done = CliRunner().invoke(catalogue, ["init", str(folder), "--categories", "shops", "--json"])
    files = json.loads(done.stdout)["files"]
    assert files == sorted({*_SET, *(path.name for path in STARTER.iterdir())})
    assert sorted(path.name for path in folder.iterdir()) == files
    licence, kept = (place / "categories.LICENSE" for place in (folder, CATEGORY_SETS / "shops"))
    assert licence.read_bytes() == kept.read_bytes()
    assert records(folder / CATEGORIES) == category_records("shops")
    others = (path for path in STARTER.iterdir() if path.name not in _SET)
    assert [path.name for path in others if (folder / path.name).read_bytes() != path.read_bytes()] == []
    built = json.loads(run(tmp_path, "build").stdout)
    assert (built["counts"]["categories"], built["notes"]) == (3, [])


def test_init_adds_categories_to_a_catalogue_and_replaces_none(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson").write_text("mine")
    words = ["init", str(tmp_path), "--categories", "shops"]
    added = CliRunner().invoke(catalogue, [*words, "--json"])
    assert (added.exit_code, json.loads(added.stdout)["files"]) == (0, _SET)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*_SET, "shops.ndjson"]
    assert (tmp_path / "shops.ndjson").read_text() == "mine"
    (tmp_path / "categories.ndjson").write_text("mine too")
    again = CliRunner().invoke(catalogue, words)
    assert (again.exit_code, "is there: remove it, or name another directory" in again.stderr) == (1, True)
    assert (tmp_path / "categories.ndjson").read_text() == "mine too"


def test_init_refuses_a_directory_that_is_not_empty_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson").write_text("mine")
    for target, reason in (
        (tmp_path, "is not empty: name another directory"),
        (tmp_path / "shops.ndjson", "cannot be"),
    ):
        done = CliRunner().invoke(catalogue, ["init", str(target)])
        assert (done.exit_code, f"Nothing was written: {target} {reason}" in done.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["shops.ndjson"]
    assert (tmp_path / "shops.ndjson").read_text() == "mine"
