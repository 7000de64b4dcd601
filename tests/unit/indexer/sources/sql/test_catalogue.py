"""A catalogue in a SQLite file: its mapping, the values of columns, what fits, and what is refused or reported."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from indexer.records.faults import RefusedRecordError
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.records.related import RECORDS
from indexer.records.shop import Record
from indexer.sources.sql.catalogue import SqlCatalogue, open_engine, transaction
from indexer.sources.sql.tables import TableColumn, TableMapping, ValueForm, load_mapping
from tests.support.catalogues import shop


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
        "popularity, aliases, checkout_hosts, logo, visibility, source)"
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


@pytest.mark.parametrize(
    ("form", "value", "read"),
    [
        (ValueForm.TEXT, "[a]", "[a]"),
        (ValueForm.TEXT, 17, "17"),
        (ValueForm.TEXT, True, True),
        (ValueForm.NUMBER, Decimal("5.000"), 5),
        (ValueForm.NUMBER, Decimal(9_007_199_254_740_993), 9_007_199_254_740_993),
        (ValueForm.NUMBER, Decimal("inf"), inf),
        (ValueForm.BOOLEAN, 1, True),
        (ValueForm.BOOLEAN, Decimal(1), True),
        (ValueForm.BOOLEAN, 2, 2),
        (
            ValueForm.TIMESTAMP,
            datetime(2031, 5, 6, 7, 8, 9, tzinfo=timezone(timedelta(hours=2))),
            "2031-05-06T07:08:09+02:00",
        ),
        (ValueForm.TIMESTAMP, datetime(2031, 5, 6, 7, 8, 9, 10), "2031-05-06T07:08:09.000010+00:00"),  # noqa: DTZ001 - of a column without zone
        (ValueForm.TIMESTAMP, date(2031, 5, 6), "2031-05-06"),
        (ValueForm.STRUCTURE, "null", None),
        (ValueForm.TEXT_OR_LIST, ' ["card"]', ["card"]),
        (ValueForm.TEXT_OR_LIST, "2015", "2015"),
    ],
)
def test_a_value_is_read_as_its_field_takes_it(form: ValueForm, value: object, read: object) -> None:
    found = TableColumn("c", "f", form, holds_json=False, holds_time=False).read(value)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2031-05-06 07:08:09", "2031-05-06T07:08:09Z"),
        ("2031-05-06 07:08:09.123456+00", "2031-05-06T07:08:09.123456Z"),
        ("2031-05-06T07:08:09+02:00", "2031-05-06T07:08:09+02:00"),
        ("infinity", "infinity"),
    ],
)
def test_a_column_of_times_without_a_zone_is_in_utc(text: str, read: str) -> None:
    assert TableColumn("c", "f", ValueForm.TIMESTAMP, holds_json=False, holds_time=True).read(text) == read
    assert TableColumn("c", "f", ValueForm.TIMESTAMP, holds_json=False, holds_time=False).read(text) == text


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("zqcanaryzq", "is not valid JSON"),
        ('{"a": "zqcanaryzq", "a": 1}', "has the same key twice in one object"),
        ('["zqcanaryzq\udcff"]', "is not UTF-8"),
        ('["zqcanaryzq", NaN]', "holds NaN or Infinity, which JSON does not have"),
    ],
)
def test_a_text_that_should_be_json_and_is_not_is_reported_by_field_alone(text: str, reason: str) -> None:
    with pytest.raises(RefusedRecordError) as refused:
        TableColumn("c", "discount", ValueForm.STRUCTURE, holds_json=False, holds_time=False).read(text)
    assert refused.value.faults == (("discount", reason),)
    assert "zqcanaryzq" not in repr(refused.value)


def test_every_type_has_a_key_of_fields_that_it_must_state_but_the_third() -> None:
    for model in RECORDS.values():
        optional = [field for field in model.key_fields if not model.model_fields[field].is_required()]
        assert optional == list(model.key_fields[2:])


SHOPS = "CREATE TABLE shops (id TEXT, name TEXT, domain TEXT, categories TEXT, visibility TEXT"
TABLE = (
    'CREATE TABLE "Our Merchants" (number INTEGER, "Display Name" TEXT, domain TEXT, categories JSON, "select" TEXT)'
)
CATEGORIES = json.dumps([{"slug": "a", "name": "A"}])


def _file(tmp_path: Path, *statements: str | tuple[str, tuple[object, ...]]) -> str:
    path = tmp_path / "catalogue.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            if isinstance(statement, str):
                connection.execute(statement)
            else:
                connection.execute(*statement)
    return f"sqlite:///{path}"


def _shop_row(shop_id: object, name: object = "A", **more: object) -> tuple[str, tuple[object, ...]]:
    fields = {"id": shop_id, "name": name, "domain": f"{shop_id!s:.5}.internal", "categories": CATEGORIES}
    fields = {**fields, "visibility": "public", **more}
    marks = ", ".join("?" * len(fields))
    return f"INSERT INTO shops ({', '.join(fields)}) VALUES ({marks})", tuple(fields.values())  # noqa: S608 - names of this file


def _read(
    url: str,
    mapping: Mapping[str, TableMapping] | None = None,
    kind: str = "shops",
    **how: Any,  # noqa: ANN401
) -> tuple[list[tuple[int, Record]], list[str]]:
    log = ProblemLog()
    source = SqlCatalogue(url, mapping, **how)
    read = [(line, record) for line, record in source.records(kind, log, lambda _: None)]
    return read, [str(problem) for problem in log.listed]


def _refusal(url: str, mapping: Mapping[str, TableMapping] | None = None) -> str:
    with pytest.raises(CatalogueError) as refused:
        SqlCatalogue(url, mapping)
    return str(refused.value)


def test_a_mapping_names_tables_and_columns_and_only_its_types_are_read(tmp_path: Path) -> None:
    url = _file(
        tmp_path,
        TABLE,
        ("INSERT INTO \"Our Merchants\" VALUES (7, 'Kiosk', 'kiosk.internal', ?, 'public')", (CATEGORIES,)),
        "CREATE TABLE offers (whatever TEXT)",
    )
    columns = {"id": "number", "name": "Display Name", "visibility": "select"}
    mapping = {"shops": TableMapping(table="Our Merchants", columns=columns)}
    ((number, record),), problems = _read(url, mapping)
    fields = {**shop("Kiosk", "kiosk.internal", id="7"), "categories": json.loads(CATEGORIES)}
    del fields["source"]
    assert (number, record, problems) == (1, RECORDS["shops"].model_validate(fields), [])
    assert SqlCatalogue(url, mapping).kinds() == ("shops",)


def test_a_table_of_another_schema_is_found(tmp_path: Path) -> None:
    url = _file(tmp_path, f"{SHOPS})", _shop_row("s1"))
    read, problems = _read(url, {"shops": TableMapping(table="main.shops")})
    assert ([number for number, _ in read], problems) == ([1], [])


def test_tables_and_columns_that_do_not_fit_are_all_reported_by_name(tmp_path: Path) -> None:
    url = _file(
        tmp_path,
        "CREATE TABLE shops (id TEXT, name TEXT, domain TEXT, categories TEXT, colour TEXT, gone TEXT, label TEXT)",
        "CREATE TABLE coupons (id TEXT)",
    )
    mapping = {
        "shops": TableMapping(columns={"name": "title"}, deleted="gone", version="counter"),
        "offers": TableMapping(table="articles"),
    }
    assert _refusal(url, mapping) == (
        "the catalogue's database does not fit: table shops has no column counter; table shops has no column title; "
        "table shops has no column for visibility; table shops has columns that are no fields (colour, label, name): "
        "map them, or use --lenient; table shops has a column gone of another type than a boolean, a number or a time; "
        "there is no table articles"
    )
    assert "table coupons has no column for shop_id; table coupons has no column for code;" in _refusal(url)


def test_a_version_column_that_is_neither_a_number_nor_a_time_is_refused(tmp_path: Path) -> None:
    url = _file(tmp_path, f"{SHOPS}, mark BLOB)")
    assert _refusal(url, {"shops": TableMapping(version="mark")}) == (
        "the version column mark of the catalogue's database is neither a whole number nor a time"
    )


def test_unknown_columns_and_unknown_fields_within_json_are_passed_over_when_lenient(tmp_path: Path) -> None:
    odd = json.dumps([{"slug": "a", "name": "A", "parent": "b"}])
    url = _file(tmp_path, f"{SHOPS}, colour TEXT)", _shop_row("s1", categories=odd, colour="red"))
    assert "columns that are no fields (colour)" in _refusal(url)
    read, problems = _read(url, lenient=True)
    assert ([number for number, _ in read], problems) == ([1], [])


@pytest.mark.rule("V1.silent")
def test_bad_rows_are_reported_by_row_and_field_in_the_words_of_ndjson_and_without_values(tmp_path: Path) -> None:
    url = _file(
        tmp_path,
        f"{SHOPS}, popularity REAL, updated_at TEXT)",
        _shop_row("s1", "zqcanaryzq\u202e"),
        _shop_row("s2"),
        _shop_row("s3", None, categories="zqcanaryzq"),
        _shop_row("s4", popularity=-1.0, visibility="zqcanaryzq"),
        _shop_row("s5", popularity="zqcanaryzq", updated_at="zqcanaryzq"),
        (
            "INSERT INTO shops VALUES ('s6', CAST(x'7a71ff' AS TEXT), 'b.internal', ?, 'public', 9e999, NULL)",
            (CATEGORIES,),
        ),
        _shop_row("s7", name=b"zqcanaryzq"),
        _shop_row("s8", name="n" * 1_048_577),
    )
    read, problems = _read(url)
    assert [number for number, _ in read] == [2]
    assert problems == [
        "shops:1: name holds a bidirectional override or isolate",
        "shops:3: categories is not valid JSON",
        "shops:4: popularity must be at least 0",
        "shops:4: visibility must be one of 'public', 'under_review' or 'removed'",
        "shops:5: updated_at must be a date and time as in RFC 3339",
        "shops:5: popularity must be a number or null",
        "shops:6: name holds characters that are not valid Unicode",
        "shops:6: popularity must be a finite number",
        "shops:7: name must be a string",
        "shops:8: the row is longer than 1048576 characters",
    ]


def test_rows_that_say_that_their_record_is_gone_are_passed_over(tmp_path: Path) -> None:
    url = _file(
        tmp_path,
        f"{SHOPS}, gone BOOLEAN)",
        *(_shop_row(f"s{number}", gone=gone) for number, gone in enumerate((None, 0, 1, "maybe"), 1)),
    )
    read, problems = _read(url, {"shops": TableMapping(deleted="gone")})
    assert ([number for number, _ in read], problems) == (
        [1, 2],
        ["shops:4: the column of deletions holds neither true nor false"],
    )


def test_a_deleted_row_has_the_key_of_its_record_whatever_its_other_columns_hold(tmp_path: Path) -> None:
    url = _file(
        tmp_path,
        f"{SHOPS})",
        "CREATE TABLE redirects (from_domain TEXT, to_domain TEXT, source TEXT, updated_at DATETIME, gone BOOLEAN)",
        *(
            f"INSERT INTO redirects VALUES ('https://WWW.Old.internal/x', 'new.internal', {source}, '{time}', {gone})"  # noqa: S608 - values of this file
            for source, time, gone in (("'crm'", "2031-05-06 07:08:09", 0), ("x'00'", "2031-05-06 07:08:10", 1))
        ),
    )
    changes = SqlCatalogue(url, {"shops": TableMapping(), "redirects": TableMapping(deleted="gone")}).changes()
    assert changes is not None
    kept, deleted = changes.read(None, 10).changes
    changes.close()
    assert kept.key == deleted.key == "old.internal/new.internal"
    assert (kept.record is None, deleted.record, deleted.order.number - kept.order.number) == (False, None, 1_000_000)


def test_versions_and_times_are_not_mixed_in_one_table(tmp_path: Path) -> None:
    url = _file(
        tmp_path,
        f"{SHOPS}, version INTEGER, updated_at TEXT)",
        _shop_row("s1", version=1),
        _shop_row("s2", updated_at="2031-05-06T07:08:09Z"),
    )
    read, problems = _read(url)
    assert ([number for number, _ in read], problems) == (
        [1],
        ["shops:2: updated_at must not be mixed with version in one table"],
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("zqsecretzq", "the catalogue's database URL is invalid: write scheme://user@host/database"),
        ("nosuch://u:zqsecretzq@h/d", "no driver is installed for the scheme of the catalogue's database URL"),
        ("mysql://u:zqsecretzq@h/d", "no driver is installed for the scheme of the catalogue's database URL"),
        ("sqlite://", "a SQLite catalogue is a file: write sqlite:///path/to/file"),
        (
            "postgresql://reader:zqsecretzq@127.0.0.1:1/shops?connect_timeout=2",
            "the catalogue's database cannot be reached: nothing listens on that port",
        ),
        (
            "postgresql://reader:zqsecretzq@host.invalid/shops",
            "the catalogue's database cannot be reached: the host's name is not known",
        ),
    ],
)
def test_a_database_that_cannot_be_opened_is_reported_without_its_password(url: str, reason: str) -> None:
    assert _refusal(url) == reason


def test_a_missing_sqlite_file_is_not_made_and_a_file_that_is_none_is_reported(tmp_path: Path) -> None:
    assert _refusal(f"sqlite:///{tmp_path}/gone") == f"there is no SQLite file at {tmp_path}/gone"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text").write_text("no database" * 100)
    assert _refusal(f"sqlite:///{tmp_path}/text").endswith("cannot be read: SQLITE_NOTADB")


def test_the_catalogue_is_opened_for_reading_only(tmp_path: Path) -> None:
    engine = open_engine(_file(tmp_path, f"{SHOPS})", _shop_row("s1")))
    with transaction(engine) as connection:
        with pytest.raises(OperationalError, match="readonly"):
            connection.exec_driver_sql("DELETE FROM shops")
        assert connection.exec_driver_sql("SELECT id FROM shops").all() == [("s1",)]
