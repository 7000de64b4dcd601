"""The mapping file: what it may say, and how a mistake is reported with its location."""

from pathlib import Path

import pytest

from indexer.records.problems import CatalogueError
from indexer.sources.sql.tables import TableMapping, load_mapping


def _fault(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mapping.toml"
    path.write_text(text)
    with pytest.raises(CatalogueError) as refused:
        load_mapping(path)
    return str(refused.value).removeprefix(f"{path}")


def test_a_whole_mapping_is_read_in_the_order_of_the_types(tmp_path: Path) -> None:
    path = tmp_path / "mapping.toml"
    path.write_text("""
        [coupons]
        [shops]
        table = "crm.merchants"
        version = "row_version"
        deleted = "deleted_at"
        overlap = 500
        [shops.columns]
        name = "Display Name"
    """)
    mapping = load_mapping(path)
    assert list(mapping) == ["shops", "coupons"]
    assert dict(mapping) == {
        "shops": TableMapping(
            table="crm.merchants",
            columns={"name": "Display Name"},
            version="row_version",
            deleted="deleted_at",
            overlap=500,
        ),
        "coupons": TableMapping(),
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "[shops]\nwhere = 'x = 1'",
            ": shops.where is not known: a type has table, columns, version, deleted, overlap",
        ),
        ("[shops]\ntable = 'a.b.c'", ": shops.table is no name"),
        ("[shops]\ntable = ''", ": shops.table must not be empty"),
        ("[shops]\nversion = 7", ": shops.version must be a name in quotation marks"),
        ("[shops]\nversion = 'v'\noverlap = -1", ": shops.overlap must not be negative"),
        ("[shops]\nversion = 'v'\noverlap = '5'", ": shops.overlap must be a whole number"),
        ("[shops]\noverlap = 5", ": shops has an overlap but no version column to follow"),
        ("[shops.columns]\nname = 3", ": shops.columns.name must be a name in quotation marks"),
        ("shops = 3", ": shops must be a table of TOML, such as [shops]"),
        ("[coupons]", ": [shops] is missing: every catalogue has shops"),
    ],
)
def test_a_mistake_is_reported_with_its_location(tmp_path: Path, text: str, fault: str) -> None:
    assert _fault(tmp_path, text) == fault


def test_an_unknown_type_or_field_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    assert _fault(tmp_path, "[shops]\n[cupons]").startswith(": 'cupons' is no known type (shops, coupons, offers, ")
    assert _fault(tmp_path, "[shops.columns]\ntitle = 'x'") == (
        ": shops.columns.'title' is no field of shops (version, updated_at, id, name, domain, categories, countries, "
        "popularity, aliases, checkout_hosts, visibility, source)"
    )


def test_a_file_that_is_no_mapping_at_all_is_reported(tmp_path: Path) -> None:
    assert "is no valid TOML: " in _fault(tmp_path, "[shops\n")
    assert _fault(tmp_path, "#" * 65_537) == " is longer than 65536 bytes: that is no mapping file"
    (tmp_path / "latin").write_bytes(b"# \xe9\n[shops]\n")
    with pytest.raises(CatalogueError, match="latin is not UTF-8"):
        load_mapping(tmp_path / "latin")
    with pytest.raises(CatalogueError, match="gone cannot be read: No such file"):
        load_mapping(tmp_path / "gone")


def test_the_example_of_the_documentation_is_a_valid_mapping(tmp_path: Path) -> None:
    page = (Path(__file__).parents[5] / "docs" / "sql-source.md").read_text()
    path = tmp_path / "mapping.toml"
    path.write_text(page.split("```toml\n")[1].split("```")[0])
    assert {kind: table.overlap for kind, table in load_mapping(path).items()} == {"shops": 5000, "coupons": None}
