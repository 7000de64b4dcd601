"""The JSON Schemas of the catalogue: published as they are made, valid, and as wide as what the indexer reads."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from indexer.catalogue.new_catalogue import STARTER
from indexer.catalogue.schema import CHANGE, KINDS, catalogue_schema, record_schema
from indexer.commands.catalogue import catalogue
from indexer.commands.parts import SAMPLE
from indexer.records.problems import RefusedRecordError
from indexer.records.related import RECORDS
from indexer.sources.changes import read_change
from indexer.sources.lines import Line
from tests.support.real.sources import REPOSITORY

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
    """The records of a file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_the_published_file_is_what_the_command_prints() -> None:
    printed = CliRunner().invoke(catalogue, ["schema"]).stdout
    assert printed == PUBLISHED.read_text(encoding="utf-8"), "write it again by `make schema`"


def test_the_whole_has_each_kind_and_is_a_valid_schema() -> None:
    schema = catalogue_schema()
    Draft202012Validator.check_schema(schema)
    assert tuple(schema["$defs"])[: len(KINDS)] == KINDS


@pytest.mark.parametrize("kind", RECORDS)
def test_the_schema_of_a_kind_stands_alone_and_takes_every_record_of_the_sample_and_the_starter(kind: str) -> None:
    judge = Draft202012Validator(record_schema(kind))
    records = [record for folder in (SAMPLE, STARTER) for record in lines(folder / f"{kind}.ndjson")]
    assert [record for record in records if not judge.is_valid(record)] == []
    assert not judge.is_valid({**records[0], "colour": "red"})


@pytest.mark.parametrize("kind", RECORDS)
def test_the_fields_of_a_schema_are_those_of_the_model_with_its_required_ones(kind: str) -> None:
    schema, fields = record_schema(kind), RECORDS[kind].model_fields
    assert set(schema["properties"]) == set(fields)
    assert set(schema["required"]) == {name for name, info in fields.items() if info.is_required()}


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
