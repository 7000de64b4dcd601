"""`catalogue from-csv`: files that are packed or disguised, JSON lists, and rows that name no columns."""

import bz2
import gzip
import json
import lzma
from io import BytesIO
from typing import Any, Final
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

from indexer.commands.catalogue import catalogue
from tests.unit.indexer.catalogue.imports import Catalogue, Import
from tests.unit.indexer.catalogue.workbooks import xlsx

SHEET: Final = "Shop;Website;Category\nLamp Nörd;https://lampnord.example;Lighting\n"
HTML: Final = "a web page (HTML), whatever its name: open it in a spreadsheet program, and save it as .xlsx or CSV."
SPREADSHEET: Final = (
    '<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>\n'
    '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"><Worksheet><Table/></Worksheet></Workbook>'
)


def _zipped() -> bytes:
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        for name in ("a.csv", "b.csv", "c.csv", "d.csv"):
            archive.writestr(name, SHEET)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(SHEET.encode(), mtime=0), "is gzipped: unpack it first, by gzip -dk or any archive program."),
        (bz2.compress(SHEET.encode()), "is packed by bzip2: unpack it first, by bzip2 -dk or any archive program."),
        (lzma.compress(SHEET.encode()), "is packed by xz: unpack it first, by xz -dk or any archive program."),
        (_zipped(), "is a ZIP archive ('a.csv', 'b.csv', 'c.csv' and 1 more), no workbook: unpack it first."),
        (b"PK\x05\x06" + bytes(18), "is an empty ZIP archive: fetch it again."),
        (b"%PDF-1.7\n%\xe2\xe3", "is a PDF: export the list as .xlsx or CSV from the program that made it."),
        ("<html><body><table><tr><td>Shop</td></tr></table></body></html>", f"is {HTML}"),
        ('\ufeff\n <!DOCTYPE html>\n<table border="1">', f"is {HTML}"),
        ("<table><tr><td>Shop</td></tr></table>".encode("utf-16"), f"is {HTML}"),
        ('<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">', f"is {HTML}"),
        ("MIME-Version: 1.0\r\nContent-Type: multipart/related", f"is {HTML}"),
        (SPREADSHEET, "is an XML spreadsheet of 2003, whatever its name: open it in a spreadsheet program, and save"),
        ('<rss xmlns:g="http://base.google.com/ns/1.0" version="2.0">', "is XML: fetch the list as CSV or JSON, or"),
        ('<rss version="2.0"><channel/></rss>', "is XML: fetch the list as CSV or JSON, or"),
        ("<tr><td>Shop</td></tr>", f"is {HTML}"),
        ("{\\rtf1\\ansi Shop}", "is a text document (RTF): save the list as .xlsx or CSV."),
    ],
)
def test_a_packed_or_disguised_file_is_named_for_what_it_is(given: Import, content: str | bytes, message: str) -> None:
    done = given.run(content)
    assert (done.exit_code, done.stdout, given.made.exists()) == (1, "", False)
    assert done.stderr.startswith(f"Nothing was written: {given.file} {message}")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32"])
@pytest.mark.parametrize("first", ["", "sep=;\r\n"])
def test_unicode_is_read_with_and_without_its_mark(given: Import, encoding: str, first: str) -> None:
    (shop,) = given.shops(f"{first}{SHEET}".encode(encoding))
    assert (shop["name"], shop["domain"]) == ("Lamp Nörd", "lampnord.example")


def test_chinese_in_utf_16_without_a_mark_is_read(given: Import) -> None:
    rows = "".join(f"无印良品商店专卖店铺{at},shop{at}.example,家居用品\r\n" for at in range(30))
    shops = given.shops(f"name,url,category\r\n{rows}".encode("utf-16-le"))
    assert (len(shops), shops[0]["name"]) == (30, "无印良品商店专卖店铺0")


FEATURE: Final = {
    "type": "Feature", "id": "x1", "geometry": {"type": "Point", "coordinates": [10.0, 53.5]},
    "properties": {"name": "Lamp Nord", "website": "https://lamp.example/1", "category": "Lamps", "@a": None},
}  # fmt: skip
NORD: Final = {"id": "n", "name": "Lamp Nord", "website": "https://lamp.example/1", "category": "Lamps"}


@pytest.mark.parametrize(
    "document",
    [
        [NORD],
        {"type": "FeatureCollection", "features": [{**FEATURE, "id": "n"}]},
        {"about": {"made": "today"}, "shops": [NORD], "tags": ["a", "b"]},
        {"n": {name: value for name, value in NORD.items() if name != "id"}},
        [["id", "name", "website", "category"], list(NORD.values())],
        NORD,
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_json_list_is_read_as_a_sheet_is(given: Import, document: object, encoding: str) -> None:
    for indent in (None, 2):
        text = json.dumps(document, indent=indent).encode(encoding)
        mapped = ("--map", "key=id") if isinstance(document, dict) and "n" in document else ()
        (shop,) = given.shops(text, *mapped)
        assert (shop["id"], shop["name"], shop["domain"]) == ("n", "Lamp Nord", "lamp.example")
        assert given.run(text, *mapped).stdout.splitlines()[0] == "Format JSON"


def test_objects_that_follow_each_other_are_a_list(given: Import) -> None:
    other = {**NORD, "id": "o", "website": "o.example", "extra": 1}
    text = f"{json.dumps(NORD)}\n\n{json.dumps(other)}\n"
    assert [shop["id"] for shop in given.shops(text)] == ["n", "o"]


_FEATURE: Final = '{"type": "Feature", "properties": {"name": "Nord", "website": "nord.example"}, "geometry": null}'
_PLACE: Final = '{"type": "node", "id": 7, "tags": {"name": "Nord", "website": "nord.example"}}'


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (_FEATURE, ()),
        (f"{_FEATURE}\n", ()),
        (f"\x1e{_FEATURE}\n\x1e\n", ()),
        (f'{{"version": 0.6, "elements": [{_PLACE}]}}', ("--map", "tags.name=name", "--map", "tags.website=domain")),
        ('{"data": {"count": 1, "shops": [{"name": "Nord", "website": "nord.example"}]}}', ()),
        ('[["name", "website"], ["Nord", "nord.example"]]', ("--header-row", "1")),
    ],
)
def test_json_is_read_as_maps_and_services_write_it(given: Import, text: str, options: tuple[str, ...]) -> None:
    (shop,) = given.shops(text, *options, "--category", "X")
    assert (shop["name"], shop["domain"]) == ("Nord", "nord.example")


def test_values_of_json_are_the_texts_that_cells_have(stocked: Catalogue) -> None:
    shop: dict[str, Any] = {
        **NORD, "category": ["Lamps, Lights & more"], "visits": 12.5, "aliases": ["A; B", "C"],
        "places": {"country": ["DE", "at"]}, "people": [{"name": "X"}, {"name": "Y"}], "is": True, "empty": None,
    }  # fmt: skip
    (record,) = stocked.shops(json.dumps([shop]), "--map", "places.country=countries")
    assert record["categories"] == [{"slug": "lamps-lights-more", "name": "Lamps, Lights & more"}]
    assert (record["popularity"], record["countries"], record["aliases"]) == (12.5, ["DE", "AT"], ["A; B", "C"])
    offers = [{"shop": "n", "sku": 1, "title": "a", "price": 1.234, "currency": "EUR"}]
    (offer,) = stocked.records("offers", json.dumps(offers))
    assert (offer["id"], offer["price"]["amount"]) == ("1", "1.2340")


def test_a_list_of_addresses_has_one_column(given: Import) -> None:
    text = json.dumps(["https://a.example", "https://b.example"])
    options = ("--map", "url=name", "--map", "url=domain", "--category", "X")
    assert [shop["domain"] for shop in given.shops(text, *options)] == ["a.example", "b.example"]


@pytest.mark.rule("V1")
@pytest.mark.parametrize(
    ("text", "option", "message"),
    [
        ('[{"name": "A"', (), "looks like JSON, and is not valid (Expecting"),
        ("[" * 100_000 + '"', (), "looks like JSON, and is not valid ("),
        (
            '[{"name": "N", "website": "n.example", "visibility": "removed", "visibility": "public"}]',
            (),
            "looks like JSON, and is not valid (an object has the field 'visibility' twice): write it again.\n",
        ),
        (
            '{"a": [{"b": 1}], "c": [{"d": 2}]}',
            (),
            "is JSON that has several lists of objects ('a', 'c'): write one array",
        ),
        ('[{"a": 1}, "b"]', (), "is JSON that has no list of objects: write one array of objects, one object a shop"),
        ("[]", (), "is JSON that has no list of objects"),
        (
            '[["Nord", "nord.example"], ["Ost", "ost.example"]]',
            (),
            ": the first row looks like values ('nord.example')",
        ),
        (
            json.dumps([{f"f{at}": 1 for at in range(1_100)}]),
            (),
            "is JSON that has objects with 1,100 different fields",
        ),
        (json.dumps([NORD]), ("--encoding", "utf-8"), "is JSON, which has no encoding: leave --encoding out."),
        (json.dumps([NORD]), ("--sheet", "A"), "is not a workbook, so it has no sheets: leave --sheet out."),
    ],
)
def test_other_json_is_refused_with_what_to_do(given: Import, text: str, option: tuple[str, ...], message: str) -> None:
    space = "" if message.startswith(":") else " "
    assert given.refused(text, *option).startswith(f"Nothing was written: {given.file}{space}{message}")


def test_a_long_cell_of_json_is_refused(given: Import) -> None:
    message = "a cell of the workbook has more than 131,072 characters"
    assert message in given.refused(json.dumps([{"name": "x" * 131_073}]))


def test_a_bad_entry_of_json_is_named_by_its_place(given: Import) -> None:
    text = json.dumps([NORD, {**NORD, "id": "o", "website": "nohost"}])
    assert given.run(text).stderr.startswith("list.csv:2: domain must be a host name")


NO_HEADER: Final = "Lamp North,https://lamp.example,Lighting\nBook Barn,book.example,Books\n"


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("shops", NO_HEADER, "'https://lamp.example'"),
        ("shops", "Shop,lamp.example,X\nBook,book.example,X\n", "'lamp.example'"),
        ("shops", "1,google.example\n2,youtube.example\n", "'google.example'"),
        ("shops", "lamp.example\n", "'lamp.example'"),
        ("shops", "Lamp,info@lamp.example\nBook,mail@book.example\n", "'info@lamp.example'"),
        ("coupons", "lamp,BRIGHT10,10 %,2035-12-31\nlamp,B,5 %,31.12.2035\n", "'10 %', '2035-12-31'"),
        ("offers", "lamp;Desk;12.50\nlamp;Floor;1.00\n", "'12.50'"),
    ],
)
def test_a_first_row_of_values_stops_the_import(stocked: Catalogue, kind: str, text: str, values: str) -> None:
    assert stocked.refused(text, "--kind", kind, "--map", f"{text[:4]}=name") == (
        f"Nothing was written: {stocked.file}: the first row looks like values ({values}), not like names of columns:"
        " where none names them, --no-header calls them 1, 2, 3, to be mapped as by --map 1=name; where another row"
        " does, --header-row N takes row N.\n"
    )


def test_columns_without_names_are_mapped_by_their_numbers(given: Import) -> None:
    options = ("--no-header", "--map", "1=name", "--map", "2=domain", "--map", "3=categories")
    shops = given.shops(NO_HEADER, *options)
    assert [shop["name"] for shop in shops] == ["Lamp North", "Book Barn"]
    assert given.refused(f"{NO_HEADER}C,nohost,X\n", *options).startswith("list.csv:3: domain must be a host name")
    rows = [row.split(",") for row in NO_HEADER.splitlines()]
    assert [shop["name"] for shop in given.shops(xlsx(rows), *options)] == ["Lamp North", "Book Barn"]


@pytest.mark.parametrize(
    "header",
    [
        "shop.name,tags.url,category", "name,url,2024", "Name,https://schema.org/url,category", "name,url,cat. (1.5)",
        "Zzz,Yyy,Xxx",
    ],
)  # fmt: skip
def test_names_of_columns_with_dots_and_numbers_are_names(given: Import, header: str) -> None:
    first, second, _ = header.split(",")
    text = f"{header}\nLamp,lamp.example,7\n"
    options = ["--map", f"{first}=name", "--map", f"{second}=domain", "--category", "X"]
    if "schema" in header:
        assert "looks like values" in given.run(text, *options).stderr
        options += ["--header-row", "1"]
    assert [shop["name"] for shop in given.shops(text, *options)] == ["Lamp"]


@pytest.mark.parametrize(
    ("title", "row"),
    [
        ("Report: partner shops\nGenerated: 2026-10-01\n\n", 4),
        ("Shops, as of 1 October, 12:00\n\n", 3),
        ("Shop\n", 2),
        ("List of;all partners\n", 2),
    ],
)
def test_titles_above_the_names_of_columns_stop_the_import_with_what_to_type(
    given: Import, title: str, row: int
) -> None:
    text = f"{title}{SHEET}"
    done = given.refused(text)
    if "12:00" not in title:  # where the title has another delimiter, the columns are not seen yet
        assert f", and row {row} does ('Shop', 'Website', 'Category'): say so by --header-row {row}.\n" in done
    (shop,) = given.shops(text, "--header-row", str(row))
    assert (shop["name"], shop["categories"][0]["name"]) == ("Lamp Nörd", "Lighting")
    rows = [line.split(";") for line in text.splitlines()]
    assert f"say so by --header-row {row}." in given.run(xlsx(rows)).stderr
    assert len(given.shops(xlsx(rows), "--header-row", str(row))) == 1


def test_a_row_that_is_not_there_names_no_columns(given: Import) -> None:
    for row in (2, 9):
        message = f"list.csv has no row {row}, or it is blank: name another one."
        assert message in given.refused("Title\n\nname,url,category\nA,a.example,X\n", "--header-row", str(row))


def test_records_around_a_list_are_ignored_with_a_note(given: Import) -> None:
    text = f"HDR;20261001;partner\n{SHEET}TRL;1\n"
    assert [shop["name"] for shop in given.shops(text)] == ["Lamp Nörd"]
    assert "note: the records HDR and TRL around the list were ignored\n" in given.run(text).stdout
    alone = f"HDR;20261001;partner\n{SHEET}"
    assert len(given.shops(alone)) == 1
    assert "note: the record HDR before the list was ignored\n" in given.run(alone).stdout
    bare = "HDR|1\nLamp|lamp.example|X\nBook|book.example|X\nTRL|2\n"
    assert "the first row looks like values ('lamp.example')" in given.run(bare).stderr
    options = ("--no-header", "--map", "1=name", "--map", "2=domain", "--map", "3=categories")
    assert [shop["name"] for shop in given.shops(bare, *options)] == ["Lamp", "Book"]


def test_a_shop_whose_name_is_that_of_a_trailer_stays(given: Import) -> None:
    assert [shop["name"] for shop in given.shops(f"{SHEET}TRL;trl.example;X\n")] == ["Lamp Nörd", "TRL"]


@pytest.mark.rule("V1.shown")
def test_a_long_first_row_is_cut_in_messages(stocked: Catalogue) -> None:
    for text in (f"{'x' * 22_000}\nA\n", f"name,url,{'x' * 22_000}\nA,nohost,X\n", f"{'y,' * 22_000}\nA\n"):
        for options in ((), ("--map", "none=name"), ("--map-value", "none:a=public"), ("--kind", "coupons")):
            done = stocked.run(text, *options)
            assert done.exit_code == 1
            assert "x" * 61 not in done.output
            assert len(done.output) < 2_000


def test_numbers_of_one_are_written_as_such(stocked: Catalogue) -> None:
    shipping = stocked.run("shop,countries\nlamp,DE\n", "--kind", "shipping").stdout
    assert f"Wrote 1 shipping statement to {stocked.made / 'shipping.ndjson'}; 0 bad rows were left out." in shipping
    two = stocked.run("shop,countries\nlamp,DE\nbook,AT\nx,DE\n", "--kind", "shipping", "--skip-invalid").stdout
    assert f"Wrote 2 shipping statements to {stocked.made / 'shipping.ndjson'}; 1 bad row was left out." in two
    bad = stocked.run("name,url,category\nA,nohost,X\n").stderr
    assert bad.endswith("Nothing was written: 1 bad row: correct it, or leave it out by --skip-invalid.\n")
    shop = {**NORD, "visibility": "public", "categories": [{"slug": "x", "name": "X"}], "popularity": -1}
    del shop["website"], shop["category"]
    (stocked.made / "shops.ndjson").write_text(f"{json.dumps({**shop, 'domain': 'lamp.example'})}\n")
    valid = CliRunner().invoke(catalogue, ["validate", str(stocked.made)]).stdout
    assert "2 problems in 2 records. Valid records:" in valid  # the file as a whole is the second one
    lines = [{**shop, "popularity": 1, "domain": "lamp.example"}, {**shop, "domain": "b.example"}]
    (stocked.made / "shops.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    valid = CliRunner().invoke(catalogue, ["validate", str(stocked.made)]).stdout
    assert "1 problem in 1 record. Valid records: 1 shops, 2 shipping; 1 public shop." in valid
