"""docs/catalogue.md: its tables have every field and value of the models, and every record that it shows is built."""

import json
import re
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner, Result

from index_mappings.countries import GROUPS
from indexer.__main__ import index
from indexer.catalogue.new_catalogue import STARTER
from indexer.records.related import RECORDS
from indexer.records.shop import Record
from indexer.sources.changes import StatedChange
from tests.support.real.sources import REPOSITORY

PAGE: Final = (REPOSITORY / "docs" / "catalogue.md").read_text(encoding="utf-8")
_ROW: Final = re.compile(r"^\| `(\w+)` \| ([^|]+) \| (.+?) \|(?: (.*) \||)$", re.MULTILINE)
_CHANGES: Final = "changes"


def sections() -> dict[str, str]:
    """The text below each title, by the title; what comes before the first one is called `start`."""
    titles = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return {"start": titles[0], **dict(zip(titles[1::2], titles[2::2], strict=True))}


def examples(section: str) -> str:
    """The lines of the NDJSON blocks of a section."""
    return "".join(re.findall(r"^```ndjson\n(.*?)^```$", sections()[section], re.MULTILINE | re.DOTALL))


def literals(annotation: object) -> set[str]:
    """The values that a field of fixed values may have, in lists too."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {value for info in annotation.model_fields.values() for value in literals(info.annotation)}
    return {value for part in get_args(annotation) for value in literals(part)}


def write_records(folder: Path) -> None:
    """The records of the page as a catalogue."""
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
