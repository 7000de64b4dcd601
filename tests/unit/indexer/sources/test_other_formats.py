"""A CSV or one JSON document that is given as a catalogue is recognised, and the error says what to do."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from indexer.__main__ import index
from indexer.records.problems import CatalogueError
from indexer.sources.ndjson import NdjsonCatalogue, refuse_other_formats
from tests.support.catalogues import shop

ARRAY = json.dumps([shop("Lamp")])


@pytest.mark.parametrize("text", ["name,url\nA,a.example\n", '\ufeff"Id";"Name"\n1;A\n', "Name\tX\nA\tB\n"])
@pytest.mark.parametrize("name", ["shops.csv", "shops.ndjson", "list.txt"])
def test_a_csv_leads_to_the_command_that_imports_it(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(index, ["build", "--catalogue", str(path), "--data-dir", str(tmp_path / "index")])
    advice = f"make a catalogue of it by shop-directory catalogue from-csv {path} DIRECTORY"
    assert (done.exit_code, done.stderr) == (1, f"Nothing was published: {path} is a CSV: {advice}.\n")


@pytest.mark.parametrize("text", [ARRAY, f" \n{ARRAY}", "[\n  {\n", json.dumps({"shops": []}, indent=2)])
def test_one_json_document_is_to_be_written_as_one_object_per_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shops.json"
    path.write_text(text)
    advice = f"write one object per line (NDJSON); for an array: jq -c '.[]' {path}"
    with pytest.raises(CatalogueError) as refused:
        NdjsonCatalogue(path)
    assert str(refused.value) == f"{path} is one JSON document: {advice}"


def test_a_directory_with_such_a_file_instead_of_shops_says_so(tmp_path: Path) -> None:
    (tmp_path / "shops.csv").write_text("name,url\n")
    with pytest.raises(CatalogueError, match=r"shops\.csv is a CSV: make a catalogue of it by"):
        NdjsonCatalogue(tmp_path)
    (tmp_path / "shops.csv").rename(tmp_path / "shops.ndjson.gz")
    (tmp_path / "shops.ndjson.gz").write_bytes(gzip.compress(ARRAY.encode()))
    with pytest.raises(CatalogueError, match=r"shops\.ndjson\.gz is one JSON document"):
        NdjsonCatalogue(tmp_path)


def test_a_csv_of_another_kind_is_not_led_to_the_import_of_shops(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson").write_text(json.dumps(shop("Lamp")))
    (tmp_path / "coupons.ndjson").write_text("code,shop_id\nA,1\n")
    with pytest.raises(CatalogueError, match=r"coupons\.ndjson is a CSV: write one JSON object per line"):
        NdjsonCatalogue(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "\n", json.dumps(shop("Lamp")), '{"id": "broken, name', "[[[", "[]", "no json, at all", '"name"']
)
def test_what_may_be_ndjson_with_a_bad_line_is_left_to_its_reading(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shops.ndjson"
    path.write_text(text)
    refuse_other_formats(path)
    assert NdjsonCatalogue(tmp_path).kinds() == ("shops",)
