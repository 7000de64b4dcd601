"""`catalogue init`: a starter that is valid as it is, and never over somebody's files."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from indexer.catalogue.new_catalogue import new_shops_file
from indexer.commands.catalogue import catalogue
from indexer.records.problems import CatalogueError
from indexer.records.related import RECORDS


def test_init_writes_one_file_of_each_kind_and_a_readme_that_names_them(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    done = CliRunner().invoke(catalogue, ["init", str(folder), "--json"])
    files = json.loads(done.stdout)["files"]
    assert (done.exit_code, files) == (0, sorted([*(f"{kind}.ndjson" for kind in RECORDS), "README.md"]))
    assert sorted(path.name for path in folder.iterdir()) == files
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert [kind for kind in RECORDS if f"| `{kind}.ndjson` |" not in readme] == []


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


def test_nothing_is_left_of_shops_that_could_not_all_be_written(tmp_path: Path) -> None:
    def fail() -> None:
        with new_shops_file(tmp_path / "new") as output:
            output.write("{}")
            raise CatalogueError("bad row")

    with pytest.raises(CatalogueError, match="bad row"):
        fail()
    assert list(tmp_path.iterdir()) == []
