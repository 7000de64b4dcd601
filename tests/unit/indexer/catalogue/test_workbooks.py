"""`catalogue from-csv` of workbooks: what is hidden, formats of numbers, and files that are hostile."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime, time
from io import BytesIO
from typing import Final
from zipfile import ZipFile

import pytest
import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from indexer.catalogue.sheets.files import opened_sheet
from indexer.catalogue.sheets.workbooks import extract
from indexer.catalogue.sheets.workbooks.numbers import number_format, number_text
from tests.unit.indexer.catalogue.imports import Catalogue, Import
from tests.unit.indexer.catalogue.workbooks import SHOPS, ods, ods_row, patched, xls, xlsx

ROWS: Final = [ods_row(*map(str, row)) for row in SHOPS]
HIDDEN: Final = ods_row("Shop 4", "shop4.example", "X", attributes='table:visibility="collapse"')


def _filter(sheet: Worksheet) -> None:
    sheet.autofilter(0, 0, 8, 2)
    sheet.filter_column(0, "x != Shop*")
    for row in (3, 4, 7):
        sheet.set_row(row, options={"hidden": True})


def _collapse(sheet: Worksheet) -> None:
    for row in (3, 4):
        sheet.set_row(row, options={"level": 1, "hidden": True})
    sheet.set_row(5, options={"collapsed": True})
    sheet.set_row(7, 0)


def _hide(sheet: Worksheet) -> None:
    for row in (3, 4, 7):
        sheet.set_row(row, options={"hidden": True})


FLAT: Final = (
    '<style:style style:name="ro2" style:family="table-row"><style:table-row-properties style:row-height="0cm"/>'
    "</style:style>"
)


def _ods(fourth: str, fifth: str, eighth: str) -> bytes:
    """The shops, of which three rows are written with these attributes."""
    hidden = {3: fourth, 4: fifth, 7: eighth}
    return ods(
        "".join(ods_row(*map(str, row), attributes=hidden.get(at, "")) for at, row in enumerate(SHOPS)), styles=FLAT
    )


@pytest.mark.rule("V1")
@pytest.mark.parametrize(
    "book",
    [
        xlsx(change=_filter),
        xlsx(change=_collapse),
        xlsx(change=_hide),
        patched(xlsx(change=_hide), "sheet1.xml", 'hidden="1"', 'hidden="true"'),
        _ods('table:visibility="filter"', 'table:visibility="collapse"', 'table:style-name="ro2"'),
    ],
    ids=["filtered", "collapsed group and height 0", "by hand", "as a word", "ods"],
)
def test_hidden_rows_stop_the_import_until_it_is_said_what_becomes_of_them(given: Import, book: bytes) -> None:
    refused = given.run(book)
    assert (refused.exit_code, refused.stdout, given.made.exists()) == (1, "", False)
    assert refused.stderr == (
        f"Nothing was written: {given.file}: 3 rows of the sheet 'Shops' are hidden (4 to 5, 8): import them as the"
        " others by --hidden-rows take, or leave them out by --hidden-rows skip.\n"
    )
    shown = [shop["name"] for shop in given.shops(book, "--hidden-rows", "skip")]
    assert shown == ["Shop 2", "Shop 3", "Shop 6", "Shop 7", "Shop 9"]
    assert [shop["name"] for shop in given.shops(book, "--hidden-rows", "take")] == [row[0] for row in SHOPS[1:]]
    note = "3 rows of the sheet 'Shops' are hidden (4 to 5, 8), and"
    assert f"note: {note} left out\n" in given.run(book, "--hidden-rows", "skip").stdout
    assert json.loads(given.run(book, "--hidden-rows", "take", "--json").stdout)["notes"] == [f"{note} taken"]


@pytest.mark.rule("V1")
@pytest.mark.parametrize("book", [xls(is_hidden=True), xls(height=0)], ids=["hidden", "height 0"])
def test_hidden_rows_of_an_older_workbook_stop_the_import(given: Import, book: bytes) -> None:
    assert "1 row of the sheet 'Shops' is hidden (2): import" in given.refused(book)
    assert given.run(book, "--hidden-rows", "skip").exit_code == 1
    assert [shop["name"] for shop in given.shops(book, "--hidden-rows", "take")] == ["Möbel Nord"]


@pytest.mark.rule("V1")
def test_rows_of_a_collapsed_group_of_an_ods_are_hidden(given: Import) -> None:
    group = f'<table:table-row-group table:display="false">{ROWS[2]}{ROWS[3]}</table:table-row-group>'
    assert "2 rows of the sheet 'Shops' are hidden (3 to 4): import" in given.refused(
        ods(f"{ROWS[0]}{ROWS[1]}{group}{ROWS[4]}")
    )


def test_hidden_rows_without_cells_stop_nothing(given: Import) -> None:
    def hide(sheet: Worksheet) -> None:
        sheet.set_row(40, options={"hidden": True})
        sheet.set_default_row(hide_unused_rows=True)

    assert len(given.shops(xlsx(change=hide))) == 8


def test_hidden_columns_are_read_and_named(given: Import) -> None:
    book = xlsx(change=lambda sheet: sheet.set_column(1, 2, options={"hidden": True}))
    assert len(given.shops(book)) == 8
    assert "note: hidden columns are read as the others are (column 2, 3)\n" in given.run(book).stdout
    columns = (
        '<table:table-column/><table:table-column table:number-columns-repeated="2" table:visibility="collapse"/>'
        '<table:table-column table:number-columns-repeated="16381"/>'
    )
    assert "(column 2, 3)" in given.run(ods(columns + "".join(ROWS))).stdout


@pytest.mark.rule("V1")
def test_a_hidden_status_still_stops_the_import(given: Import) -> None:
    rows = [["name", "url", "category", "Status"], ["A", "a.example", "X", "gesperrt"]]
    done = given.run(xlsx(rows, lambda sheet: sheet.set_column(3, 3, options={"hidden": True})))
    assert (done.exit_code, "the column 'Status' looks as if it said which shops are suspended" in done.stderr) == (
        1,
        True,
    )


def _of_two_sheets(*, both_hidden: bool = False) -> bytes:
    made = xlsx([SHOPS[0], ["Old", "Old.example", "X"]], name="Old", Shops=[SHOPS[0], ["Shops", "Shops.example", "X"]])
    made = patched(made, "workbook.xml", 'name="Old"', 'name="Old" state="hidden"')
    return patched(made, "workbook.xml", 'name="Shops"', 'name="Shops" state="veryHidden"') if both_hidden else made


@pytest.mark.rule("V1")
def test_a_hidden_sheet_is_read_only_where_it_is_named(given: Import) -> None:
    book = _of_two_sheets()
    assert [shop["name"] for shop in given.shops(book)] == ["Shops"]
    assert given.run(book).stdout.splitlines()[0] == "Sheet 'Shops'"
    assert [shop["name"] for shop in given.shops(book, "--sheet", "Old")] == ["Old"]
    message = "list.csv has hidden sheets alone: name one of 'Old', 'Shops' by --sheet."
    assert message in given.refused(_of_two_sheets(both_hidden=True))
    style = (
        '<style:style style:name="ta1" style:family="table"><style:table-properties table:display="false"/>'
        "</style:style>"
    )
    before = f'<table:table table:name="Old" table:style-name="ta1">{ROWS[0]}{ROWS[2]}</table:table>'
    assert len(given.shops(ods("".join(ROWS), styles=style, before=before))) == 8


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0%", 0.1, "10%"),
        ("0.0 %", 0.125, "12.5%"),
        ("General", 0.1, "0.1"),
        ("0.00", 1.234, "1.2340"),
        ("#,##0.00\\ [$€-407]", 12.5, "12.5 €"),
        ('"£"#,##0', 5, "5 £"),
        ("[$CHF] #,##0.00", 1234.5, "1234.5 CHF"),
        ("00000", 123, "00123"),
        ("[Red]0.00;[Blue]-0%", 2, "2"),
        ("0.00E+00", 1200, "1200"),
        ("dd.mm.yyyy", 49674, "2035-12-31"),
        ("d. mmmm yyyy h:mm", 46296.395833333336, "2026-10-01T09:30:00"),
        ("hh:mm", 0.395833333333333, "09:30:00"),
        ("[h]:mm", 1.5, "1 day, 12:00:00"),
        ("yyyy-mm-dd", 1, "1900-01-01"),
        ("yyyy-mm-dd", 61, "1900-03-01"),
        ("yyyy-mm-dd", 1e9, "1000000000"),
        ('0" Besuche"', 7, "7"),
        ("@", 7, "7"),
    ],
)
def test_a_number_is_read_as_its_format_shows_it_where_that_says_more(code: str, value: float, text: str) -> None:
    assert number_text(value, number_format(code)) == text


def test_days_of_the_system_of_1904_are_read() -> None:
    assert number_text(48212, number_format("yyyy-mm-dd"), from_1904=True) == "2035-12-31"


def test_a_percentage_of_a_workbook_is_a_discount(stocked: Catalogue) -> None:
    rows: list[list[object]] = [["shop", "code", "discount"], ["lamp", "A"], ["lamp", "B"]]
    file = BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet()
        for at, row in enumerate(rows):
            sheet.write_row(at, 0, row)
        sheet.write(1, 2, 0.1, book.add_format({"num_format": "0%"}))
        sheet.write(2, 2, 5, book.add_format({"num_format": "#,##0.00 [$€-407]"}))
    cell = '<table:table-cell office:value-type="{}" office:value="{}"{}><text:p>x</text:p></table:table-cell>'
    opened = ods(
        ods_row("shop", "code", "discount")
        + ods_row("lamp", "A", cell.format("percentage", "0.1", ""))
        + ods_row("lamp", "B", cell.format("currency", "5", ' office:currency="EUR"'))
    )
    for book_ in (file.getvalue(), opened):
        first, second = stocked.records("coupons", book_)
        assert first["discount"] == {"kind": "percent", "value": "10"}
        assert second["discount"] == {"kind": "amount", "value": "5", "currency": "EUR"}


def _rows(given: Import, book: bytes) -> list[tuple[int, list[str]]]:
    given.file.write_bytes(book)
    with opened_sheet(given.file) as sheet:
        return list(sheet.rows())


def test_every_kind_of_cell_is_read(given: Import) -> None:
    file = BytesIO()
    with xlsxwriter.Workbook(file, {"default_date_format": "dd.mm.yyyy hh:mm"}) as book:
        sheet = book.add_worksheet()
        bold = book.add_format({"bold": True})
        sheet.write_row(0, 0, ["Name & <Co>", 12, 12.5, True, date(2035, 12, 31), datetime(2026, 10, 1, 9, 30)])  # noqa: DTZ001
        sheet.write_rich_string(2, 0, "Möbel ", bold, "Nord")
        sheet.write_formula(2, 1, "=A1", None, "made")
        sheet.write_formula(2, 2, "=1/0", None, "#DIV/0!")
        sheet.write_formula(2, 3, "=1+1", None, 2)
        sheet.write(2, 4, time(9, 30), book.add_format({"num_format": "hh:mm"}))
        sheet.write_string(2, 5, "a\rb _x0041_")
    book_ = patched(file.getvalue(), "sharedStrings.xml", "<si><r><t", '<si><rPh sb="0" eb="1"><t>xx</t></rPh><r><t')
    assert _rows(given, book_) == [
        (1, ["Name & <Co>", "12", "12.5", "true", "2035-12-31", "2026-10-01T09:30:00"]),
        (3, ["Möbel Nord", "made", "", "2", "09:30:00", "a\rb _x0041_"]),
    ]


def test_a_sheet_without_references_and_with_inline_texts_is_read(given: Import) -> None:
    sheet = (
        '<x:row><x:c t="inlineStr"><x:is><x:t>name</x:t></x:is></x:c><x:c t="str"><x:v>url</x:v></x:c></x:row>'
        '<x:row r="5"><x:c t="d"><x:v>2026-10-01T00:00:00Z</x:v></x:c><x:c r="D5" t="n"><x:v>7</x:v></x:c></x:row>'
    )
    book = patched(xlsx(), "sheet1.xml", "(?s)<sheetData>.*</sheetData>", f"<x:sheetData>{sheet}</x:sheetData>")
    book = patched(book, "sheet1.xml", "<worksheet ", '<worksheet xmlns:x="urn:x" ')
    assert _rows(given, book) == [(1, ["name", "url"]), (5, ["2026-10-01", "", "", "7"])]


def test_every_kind_of_cell_of_an_ods_is_read(given: Import) -> None:
    cell = '<table:table-cell office:value-type="{}" {}>{}</table:table-cell>'
    note = "<office:annotation><text:p>a comment</text:p></office:annotation>"
    text = '<text:p>Möbel<text:s text:c="2"/><text:span>Nord</text:span></text:p><text:p>zwei</text:p>'
    merged = cell.format("string", 'table:number-rows-spanned="3"', "<text:p>all</text:p>")
    rows = (
        ods_row("<table:table-cell/>", attributes='table:number-rows-repeated="3"'),
        ods_row(
            cell.format("string", "", note + text),
            cell.format("float", 'office:value="1.234"', "<text:p>1,23</text:p>"),
            cell.format("float", 'office:value="7"', "<text:p>007</text:p>"),
            cell.format("date", 'office:date-value="2035-12-31"', "<text:p>31.12.35</text:p>"),
            cell.format("date", 'office:date-value="2026-10-01T09:30:00"', ""),
            cell.format("boolean", 'office:boolean-value="true"', "<text:p>WAHR</text:p>"),
            cell.format("string", 'calcext:value-type="error"', "<text:p>#N/A</text:p>"),
            '<table:table-cell table:number-columns-repeated="2"/>',
            merged,
            '<table:table-cell table:number-columns-repeated="16374"/>',
        ),
        ods_row("b", attributes='table:number-rows-repeated="2"'),
        ods_row("<table:table-cell/>", attributes='table:number-rows-repeated="1048570"'),
    )
    assert _rows(given, ods("".join(rows))) == [
        (4, ["Möbel  Nord\nzwei", "1.2340", "007", "2035-12-31", "2026-10-01T09:30:00", "true", "", "", "", "all"]),
        (5, ["b", *[""] * 8, "all"]),
        (6, ["b", *[""] * 8, "all"]),
    ]


@pytest.mark.parametrize(
    ("at", "note"),
    [
        ((59_999, 701), "note: 1 row with cells right of all columns alone ignored, first 60000\n"),
        ((1_048_575, 16_383), "note: cells far right of the list were ignored (1, first XFD1048576)\n"),
    ],
)
def test_a_stray_cell_far_out_is_ignored_with_a_note(
    given: Import, monkeypatch: pytest.MonkeyPatch, at: tuple[int, int], note: str
) -> None:
    # Enough for the program itself, and for no table as wide and as long as the cell is far out.
    monkeypatch.setattr(extract, "MEMORY", 200 << 20)
    book = xlsx(change=lambda sheet: sheet.write(*at, "x"))
    assert len(given.shops(book)) == 8
    assert note in given.run(book).stdout


def test_a_cell_next_to_the_columns_still_makes_its_row_bad(given: Import) -> None:
    done = given.run(xlsx(change=lambda sheet: sheet.write(2, 5, "Nord")))
    assert done.stderr.startswith("list.csv:3: the row is longer than the header")


def _repeated(size: int) -> bytes:
    """A sheet with a cell of this many characters."""
    return patched(xlsx(), "sharedStrings.xml", "</t>", f"{'a' * size}</t>")


def _archive(*names: str) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w") as book:
        for name in names:
            book.writestr(name, "")
    return file.getvalue()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _repeated(64 << 20), "times its size: delete what is not part of the list, or save it as CSV."),
        (lambda: _repeated(1 << 20), "a cell of the workbook has more than 131,072 characters: shorten it."),
        (
            lambda: _archive("xl/workbook.bin"),
            "is an .xlsb, whose hidden rows are not known: save it as .xlsx or as CSV.",
        ),
        (
            lambda: _archive("xl/workbook.xml", *map(str, range(10_001))),
            "has 10,002 members, which no workbook has: save it as CSV.",
        ),
        (
            lambda: patched(xlsx(), "sheet1.xml", "<worksheet ", '<!DOCTYPE a [<!ENTITY b "bb">]><worksheet '),
            "declares a type of document, which no spreadsheet program does: save it again.",
        ),
        (
            lambda: patched(xlsx(), "sheet1.xml", "<sheetData>", f'<sheetData a="{"b" * (2 << 20)}">'),
            "has a tag that never ends (xl/worksheets/sheet1.xml): save it again.",
        ),
        (lambda: patched(xlsx(), "sheet1.xml", 'r="B2"', 'r="?"'), "the workbook is damaged: it has a cell '?'."),
        (lambda: patched(xlsx(), "sheet1.xml", "</sheetData>", ""), "is not a readable workbook (xl/worksheets/"),
        (lambda: patched(xlsx(), "sheet1.xml", "<v>1</v>", "<v>99</v>"), "is not a readable workbook (IndexError"),
        (lambda: xlsx()[:-700], "is not a readable workbook (File is not a zip file)"),
        (lambda: xls()[:1_900], "is not a readable workbook ("),
        (
            lambda: ods(ods_row("a", attributes='table:number-rows-repeated="4000000000"')),
            "the sheet has more than 1,048,576 rows: save it as CSV.",
        ),
    ],
)
def test_a_hostile_or_damaged_workbook_is_refused_with_words(
    given: Import, make: Callable[[], bytes], message: str
) -> None:
    assert message in given.refused(make())


def test_a_count_of_texts_that_are_not_there_takes_no_memory(given: Import) -> None:
    book = patched(
        xlsx(),
        "sharedStrings.xml",
        'count="[0-9]+" uniqueCount="[0-9]+"',
        'count="4000000000" uniqueCount="4000000000"',
    )
    assert len(given.shops(book)) == 8


def test_a_workbook_that_takes_too_much_memory_is_refused(given: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MEMORY", 100 << 20)
    texts = [[f"{number}{'x' * 500}"] for number in range(200_000)]
    message = "list.csv takes more than 100 MiB of memory: split it, or save it as CSV."
    assert message in given.refused(xlsx([*SHOPS, *texts]))


def test_the_process_that_reads_a_workbook_imports_nothing_that_checks_records() -> None:
    imports = f"import sys, {extract.__name__}; print(*sys.modules)"
    named = subprocess.run([sys.executable, "-P", "-c", imports], capture_output=True, text=True, check=True).stdout
    assert {"pydantic", "publicsuffixlist", "indexer.records.shop"} & set(named.split()) == set()
