"""`catalogue from-csv` into a catalogue: coupons and other kinds, workbooks, what is replaced, and kills."""

import gzip
import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from indexer.catalogue.sheets.columns import FIELDS
from indexer.catalogue.sheets.files import CsvFile
from indexer.catalogue.sheets.records import SheetRecords
from indexer.catalogue.sheets.workbooks.rows import NumberedCells
from indexer.commands.catalogue import catalogue
from indexer.records.problems import CatalogueError
from indexer.sources.ndjson import FROM_SHEETS
from tests.unit.indexer.catalogue.imports import Catalogue, Import
from tests.unit.indexer.catalogue.workbooks import xlsx

ROWS: Final = tomllib.loads(Path(__file__).with_name("sheet_rows.toml").read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["kind"]))
def test_a_row_of_each_kind_becomes_a_record_of_a_shop_by_its_domain_or_id(
    stocked: Catalogue, row: dict[str, Any]
) -> None:
    options = ("--currency", row["currency"]) if "currency" in row else ()
    assert stocked.records(row["kind"], row["sheet"], *options) == [row["record"]]


def test_the_rows_above_are_of_every_kind() -> None:
    assert ("shops", *dict.fromkeys(row["kind"] for row in ROWS)) == FROM_SHEETS == tuple(FIELDS)


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ("none.example;A;;;", "shop_id is no id and no domain of a shop of the catalogue: 'none.example'"),
        ("lamp;A;10;;", "discount must be such as 10 %, 12.50 EUR or free shipping; a number alone needs a column"),
        (
            "lamp;A;;1.234;",
            "min_order has three digits behind its one separator, which may be of thousands or of decimals",
        ),
        ("lamp;A;;12,50;", "min_order needs a currency, in the cell (12.50 EUR), in a column (--map COLUMN=currency)"),
        ("lamp;A;5 Taler;;", "discount must be such as 10 %, 12.50 EUR or free shipping;"),
        ("lamp;A;;;05/06/2030", "valid_until must be a date such as 2026-12-31, or with a time 2026-12-31T18:30:00Z"),
        ("lamp;A B;;;", "code must be 1 to 64 letters, marks and numbers"),
        ("lamp;2026-05-10;;;", "code is a date or a rounded number, made by a spreadsheet: write the code as a text"),
        ("lamp;10-May;;;", "code is a date or a rounded number, made by a spreadsheet: write the code as a text"),
        ("lamp;1.23E+12;;;", "code is a date or a rounded number, made by a spreadsheet: write the code as a text"),
    ],
)
def test_a_cell_that_may_mean_several_things_is_refused_with_what_it_may_be(
    stocked: Catalogue, cells: str, problem: str
) -> None:
    done = stocked.run(f"shop;code;discount;minimum;expires\n{cells}\n", "--kind", "coupons")
    assert done.stderr.startswith(f"list.csv:2: {problem}")
    assert not (stocked.made / "coupons.ndjson").exists()


@pytest.mark.parametrize(("text", "value"), [("12,50 €", "12.50"), ("1.234,5 €", "1234.5"), ("€1'000", "1000")])
def test_amounts_are_read_as_spreadsheets_write_them(stocked: Catalogue, text: str, value: str) -> None:
    (record,) = stocked.records("coupons", f"shop;code;discount\nlamp;A;{text}\n")
    assert record["discount"] == {"kind": "amount", "value": value, "currency": "EUR"}


def test_a_record_is_not_kept_without_a_field_that_limits_where_or_when_it_counts(stocked: Catalogue) -> None:
    text = "shop,code,discount,expires,blocked countries\nlamp,A,much,,\nlamp,B,,soon,\nlamp,C,,,Atlantis\n"
    (record,) = stocked.records("coupons", text, "--skip-invalid")
    assert (record["code"], record.get("discount")) == ("A", None)


@pytest.mark.parametrize(
    ("sheet", "good"),
    [
        ("shop,code,starts,expires\nlamp,A,2035-12-31\nlamp,B,,2035-12-31\nlamp,C,,\n", ["B", "C"]),
        ("shop,code,minimum,title,,\nlamp,A,12 EUR\nlamp,B,12 EUR,Two\nlamp,C,,,,\n", ["B", "C"]),
        ("shop,code,title,source\nlamp,A\nlamp,B,Two\n", ["A", "B"]),
    ],
)
def test_a_row_that_lacks_cells_is_bad_where_a_column_limits_where_or_when_a_record_counts(
    stocked: Catalogue, sheet: str, good: list[str]
) -> None:
    done = stocked.run(sheet, "--kind", "coupons")
    reason = "list.csv:2: the row is shorter than the header, so that any of its cells may be of another column"
    assert (done.exit_code, done.stderr.startswith(reason)) == ((0, False) if "A" in good else (1, True))
    records = stocked.records("coupons", sheet, "--skip-invalid")
    assert [record["code"] for record in records] == good


class Rewritten(CsvFile):
    """A sheet that another program writes again, as `text`, once it was read to its end."""

    text = ""

    def rows(self) -> Iterator[NumberedCells]:
        yield from super().rows()
        self.path.write_text(self.text)


@pytest.mark.rule("V1")
@pytest.mark.parametrize(
    "text",
    [
        "name,url,category,note\nA,a.example,X,suspended\nB,b.example,X,active\n",
        "name,url,category,suspended\nA,a.example,X,yes\nB,b.example,X,no\n",
        "name,url,category,note\nA,a.example,X,new\n",
        "",
    ],
)
def test_a_sheet_that_changes_while_it_is_read_is_not_imported(stocked: Catalogue, text: str) -> None:
    before = (stocked.made / "shops.ndjson").read_bytes()
    stocked.file.write_text("name,url,category,note\nA,a.example,X,new\nB,b.example,X,old\n")
    sheet = Rewritten(stocked.file, None)
    sheet.text = text
    with pytest.raises(CatalogueError, match="has changed while it was read: try again"):
        SheetRecords(sheet).write(stocked.made)
    assert [path.name for path in stocked.made.iterdir()] == ["shops.ndjson"]
    assert (stocked.made / "shops.ndjson").read_bytes() == before


@pytest.mark.rule("V1")
def test_a_status_of_another_kind_stops_the_import_and_leaves_suspended_records_out(stocked: Catalogue) -> None:
    text = "shop,code,status\nlamp,A,aktiv\nlamp,B,gesperrt\n"
    message = "the column 'status' looks as if it said which coupons are suspended ('aktiv' 1, 'gesperrt' 1)"
    assert message in stocked.refused(text, "--kind", "coupons")
    meant = ("--map-value", "status:aktiv=public", "--map-value", "status:gesperrt=removed")
    assert [record["code"] for record in stocked.records("coupons", text, *meant)] == ["A"]
    printed = stocked.run(text, "--kind", "coupons", *meant).stdout
    assert "Wrote 1 coupon (1 more are not public and left out) to " in printed


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)])
def test_of_a_code_that_is_public_in_one_row_and_not_in_another_neither_is_used(
    stocked: Catalogue, order: tuple[int, ...]
) -> None:
    rows = ("lamp,A,DE,public", "lamp,A,AT,removed", "lamp,B,DE,public")
    text = "\n".join(["shop,code,country,visibility", *(rows[at] for at in order), ""])
    done = stocked.run(text, "--kind", "coupons")
    public, suspended = order.index(0) + 2, order.index(1) + 2
    reason = f"id is that of line {suspended}, which is not public: neither is used: 'lamp-A'"
    assert (done.exit_code, done.stderr.splitlines()[0]) == (1, f"list.csv:{public}: {reason}")
    assert [one["code"] for one in stocked.records("coupons", text, "--skip-invalid")] == ["B"]


def test_another_kind_needs_a_catalogue_and_is_one_of_those_that_are_known(given: Import) -> None:
    missing, unknown = (given.run("shop,code\na,B\n", "--kind", kind) for kind in ("coupons", "coupon"))
    assert (missing.exit_code, f"there is no catalogue at {given.made}" in missing.stderr) == (1, True)
    assert (unknown.exit_code, unknown.stderr) == (
        2, "--kind is wrong: it must be one of shops, coupons, offers, shipping, policies.\n",
    )  # fmt: skip


def test_an_import_replaces_its_file_alone_and_keeps_the_one_before(stocked: Catalogue) -> None:
    coupons = stocked.records("coupons", "shop,code\nlamp,A\n")
    before = (stocked.made / "shops.ndjson").read_bytes()
    assert stocked.run("id,name,url,category\nlamp,Lamp,lamp.example,\n").exit_code == 1
    assert (stocked.made / "shops.ndjson").read_bytes() == before
    (shop,) = stocked.shops("id,name,url,category\nlamp,New,lamp.example,X\n")
    assert (shop["name"], (stocked.made / "shops.ndjson.previous").read_bytes()) == ("New", before)
    assert sorted(path.name for path in stocked.made.iterdir()) == [
        "coupons.ndjson", "shops.ndjson", "shops.ndjson.previous",
    ]  # fmt: skip
    assert json.loads((stocked.made / "coupons.ndjson").read_text()) == coupons[0]


@pytest.mark.rule("V1")
def test_shops_that_are_not_public_stay_so_where_a_sheet_states_no_visibility(stocked: Catalogue) -> None:
    sheet = "id,name,url,category{}\nlamp,Lamp,lamp.example,X{}\nbook,Book,book.example,X{}\n"
    stocked.shops(sheet.format(",visibility", ",under_review", ",public"))
    for text in (sheet.format("", "", ""), "name,url,category\nLamp,lamp.example,X\nBook,book.example,X\n"):
        done = stocked.run(text)
        assert f"Wrote 2 shops (1 of them not public) to {stocked.made / 'shops.ndjson'}" in done.stdout
        lamp, book = stocked.written()
        assert (lamp["visibility"], book["visibility"]) == ("under_review", "public")
    lamp, _ = stocked.shops(sheet.format(",visibility", ",public", ",public"))
    assert lamp["visibility"] == "public"


@pytest.mark.rule("V1")
def test_a_hidden_shop_whose_line_is_bad_is_not_published_by_a_sheet_without_visibility(stocked: Catalogue) -> None:
    file = stocked.made / "shops.ndjson"
    file.write_text(file.read_text().replace('"public"', '"under_review","countries":["UK"]', 1))
    assert "has 1 bad records of shops, which may be hidden ones" in stocked.refused(
        "id,name,url,category\nlamp,Lamp,lamp.example,X\n"
    )


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        ("shop,code,discount,type\nlamp,A,10 %,fixed\n", "discount must be such as 10 %, 12.50 EUR or free shipping"),
        ("shop,code,discount,type\nlamp,A,1,percent\n", "discount must be such as 10 %, 12.50 EUR or free shipping"),
        (
            "shop,code,min_order,currency\nlamp,A,12 €,USD\n",
            "min_order has another currency than its row (USD): '12 €'",
        ),
    ],
)
def test_columns_that_contradict_each_other_are_refused(stocked: Catalogue, sheet: str, message: str) -> None:
    assert message in stocked.refused(
        sheet, "--kind", "coupons", "--map", "type=discount_kind" if "type" in sheet else "code=code"
    )


def test_amounts_of_a_currency_that_cannot_be_read_are_not_given_another_one(stocked: Catalogue) -> None:
    text = "shop,title,price,currency\nlamp,A,12,Taler\nlamp,B,12,\n"
    first, second = stocked.records("offers", text, "--currency", "USD", "--skip-invalid")
    assert ("price" in first, second["price"]) == (False, {"amount": "12", "currency": "USD"})


def test_a_gzipped_file_is_replaced_by_one_and_another_directory_is_refused(stocked: Catalogue) -> None:
    plain = stocked.made / "shops.ndjson"
    (stocked.made / "shops.ndjson.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    done = stocked.run("id,name,url,category\nlamp,New,lamp.example,X\n")
    assert (done.exit_code, f" to {plain}.gz; " in done.stdout) == (0, True)
    with gzip.open(stocked.made / "shops.ndjson.gz", "rt") as file:
        assert json.loads(file.read())["name"] == "New"
    assert sorted(path.name for path in stocked.made.iterdir()) == ["shops.ndjson.gz", "shops.ndjson.gz.previous"]
    target = stocked.made.with_name("shared.ndjson")
    (stocked.made / "shops.ndjson.gz").unlink()
    target.write_bytes(b"")
    plain.symlink_to(target)
    assert stocked.run("id,name,url,category\nlamp,Linked,lamp.example,X\n").exit_code == 0
    assert (plain.is_symlink(), json.loads(target.read_text())["name"]) == (True, "Linked")
    stocked.made = stocked.made.parent
    message = f"Nothing was written: {stocked.made} holds files that are no catalogue: name another directory.\n"
    assert stocked.refused("id,name,url,category\nlamp,New,lamp.example,X\n") == message


# For each number of steps that it reads, it kills a fork at the last of so many that touch the directory, and says how
# that ended.
KILLED: Final = """
import os, signal, sys
import indexer.catalogue.sheets.records
from indexer.commands.catalogue import catalogue
folder = sys.argv[-1]
def step(event, arguments):
    global steps
    if event in {"open", "os.rename", "os.remove", "shutil.copyfile", "os.chmod"} and folder in str(arguments[0]):
        steps -= 1
        if not steps:
            os.kill(os.getpid(), signal.SIGKILL)
for line in sys.stdin:
    steps, child = int(line), os.fork()
    if not child:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.addaudithook(step)
        catalogue(sys.argv[1:])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_kill_at_any_step_leaves_the_old_file_or_the_new_one(stocked: Catalogue) -> None:
    shops, coupons = stocked.made / "shops.ndjson", stocked.made / "coupons.ndjson"
    stocked.records("coupons", "shop,code\nlamp,A\n")
    old, others = shops.read_bytes(), coupons.read_bytes()
    stocked.file.write_text("id,name,url,category\nlamp,New,lamp.example,X\n")
    seen = []
    command = [sys.executable, "-c", KILLED, "from-csv", str(stocked.file), str(stocked.made)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for steps in range(1, 40):
            print(steps, file=program.stdin, flush=True)
            ended = int(program.stdout.readline())
            found = shops.read_bytes()
            assert found == old or b'"New"' in found
            assert coupons.read_bytes() == others
            valid = CliRunner().invoke(catalogue, ["validate", str(stocked.made)])
            assert valid.exit_code == 0, valid.stdout
            seen.append(found == old)
            if ended == 0:
                break
            assert ended == -signal.SIGKILL
            shops.write_bytes(old)
    assert (seen[0], seen[-1], len(seen) > 5) == (True, False, True)


def test_a_workbook_is_read_with_its_numbers_and_dates(stocked: Catalogue) -> None:
    shops: list[list[object]] = [
        ["id", "name", "url", "category", "country", "visits"],
        [],
        [1001, "Möbel", "m.example", "X", "Polska", 1.234],
    ]
    codes: list[list[object]] = [
        ["shop", "code", "discount", "expires", "verified at", "status", "minimum"],
        ["m.example", 2026, "10 %", date(2035, 12, 31), datetime(2026, 10, 1, 9, 30), "active", 4.35 * 100],  # noqa: DTZ001
    ]
    book = xlsx(shops, Codes=codes)
    euro = ("--currency", "EUR")
    (shop,) = stocked.shops(book)
    assert (shop["id"], shop["name"], shop["countries"], shop["popularity"]) == ("1001", "Möbel", ["PL"], 1.234)
    assert stocked.run(book).stdout.splitlines()[0] == "Sheet 'Shops'; --sheet reads another one: 'Codes'"
    refused = stocked.run(book, "--sheet", "Codes", "--kind", "coupons")
    assert "the column 'status' looks as if it said which coupons are suspended ('active' 1)" in refused.stderr
    (coupon,) = stocked.records("coupons", book, "--sheet", "Codes", "--map", "status=", *euro)
    assert coupon["min_order"]["amount"] == "435"
    assert (coupon["shop_id"], coupon["code"], coupon["discount"]["value"]) == ("1001", "2026", "10")
    assert (coupon["valid_until"], coupon["last_verified_at"]) == ("2035-12-31T23:59:59Z", "2026-10-01T09:30:00Z")
    assert "list.csv has no sheet 'Stores': name one of 'Shops', 'Codes'." in stocked.refused(book, "--sheet", "Stores")
    bad = stocked.run(xlsx([*shops, ["x", "Y", "nohost", "X"]]))
    assert bad.stderr.startswith("list.csv:4: domain must be a host name with at least two labels: 'nohost'\n")


def test_a_merged_cell_is_said_of_all_its_rows(stocked: Catalogue) -> None:
    rows = [["shop", "code", "expires"], *(["lamp", code] for code in "ABC")]
    found = stocked.records("coupons", xlsx(rows, lambda sheet: sheet.merge_range(1, 2, 2, 2, "31.12.2035")))
    assert [record.get("valid_until") for record in found] == ["2035-12-31T23:59:59Z"] * 2 + [None]


@pytest.mark.parametrize("name", ["shops.xls", "shops.ods"])
def test_older_and_open_workbooks_are_read(given: Import, name: str) -> None:
    shops = given.shops(Path(__file__).with_name(name).read_bytes())
    assert [(shop["name"], shop["countries"], shop["popularity"]) for shop in shops] == [("Möbel Nord", ["AT"], 12.5)]
