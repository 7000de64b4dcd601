"""`catalogue from-csv`: which column is what, what becomes of cells, and which rows are bad."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from indexer.catalogue.csv_columns import columns_of
from indexer.catalogue.csv_shops import country_code, id_of, slug_of
from indexer.commands.catalogue import catalogue
from indexer.records.problems import CatalogueError


class Import:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "list.csv"
        self.made = folder / "made"

    def run(self, text: str | bytes, *options: str) -> Result:
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return CliRunner().invoke(catalogue, ["from-csv", str(self.file), str(self.made), *options])

    def shops(self, text: str | bytes, *options: str) -> list[dict[str, Any]]:
        done = self.run(text, *options)
        assert done.exit_code == 0, done.stderr
        valid = CliRunner().invoke(catalogue, ["validate", str(self.made)])
        assert valid.exit_code == 0, valid.stdout
        return [json.loads(line) for line in (self.made / "shops.ndjson").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def given(tmp_path: Path) -> Import:
    return Import(tmp_path)


def test_a_csv_of_all_fields_becomes_a_valid_catalogue_and_the_mapping_is_shown(given: Import) -> None:
    header = "Shop_ID,Shop Name,Website,Category,Country,Visits,AKA,Checkout-Hosts,Visibility,Source,Comment"
    row = 'n1,"Möbel, Nord",https://www.nord.example/de?a=1,Home & Living|Lighting,Germany;at,12.5,Nord|N,'
    text = f"{header}\n{row}pay.nord.example,public,crm,none\n"
    (record,) = given.shops(text)
    assert record == {
        "id": "n1", "name": "Möbel, Nord", "domain": "nord.example",
        "categories": [{"slug": "home-living", "name": "Home & Living"}, {"slug": "lighting", "name": "Lighting"}],
        "countries": ["DE", "AT"], "popularity": 12.5, "aliases": ["Nord", "N"],
        "checkout_hosts": ["pay.nord.example"], "visibility": "public", "source": "crm",
    }  # fmt: skip
    given.made.joinpath("shops.ndjson").unlink()
    shown = given.run(text).stdout.splitlines()
    assert shown[1:4] == [
        "  id              column 'Shop_ID'",
        "  name            column 'Shop Name'",
        "  domain          column 'Website'",
    ]
    assert shown[-4:] == [
        "  not used        'Comment'",
        f"Wrote 1 shops to {given.made / 'shops.ndjson'}; 0 bad rows were left out. Next:",
        f"  shop-directory catalogue validate {given.made}",
        f"  shop-directory index build --catalogue {given.made}",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_spreadsheets_write_is_read(given: Import, encoding: str) -> None:
    (shop,) = given.shops("name,url,category\nCafé 緑,a.example,Bücher\n".encode(encoding))
    assert (shop["name"], shop["categories"]) == ("Café 緑", [{"slug": "bucher", "name": "Bücher"}])


def test_another_encoding_is_refused_with_what_to_do(given: Import) -> None:
    done = given.run("name,url,category\nCafé,a.example,Bücher\n".encode("latin-1"))
    assert (done.exit_code, "is not UTF-8: save it as UTF-8" in done.stderr) == (1, True)


@pytest.mark.rule("V1.silent")
def test_bad_rows_are_reported_by_line_and_field_and_nothing_is_written_unless_they_are_skipped(given: Import) -> None:
    text = (
        'name,url,category\nA,a.example,X\nzqcanaryzq,nohost,X\n\n"C\nC",c.example,X\n,d.example,X\nE,,X\n'
        "F,f.example,\nG,g.example,X,1\nH,www.A.example,X\n"
    )
    refused = given.run(text)
    assert (refused.exit_code, refused.stderr.splitlines(), given.made.exists()) == (
        1,
        [
            "list.csv:3: domain must be a host name with at least two labels",
            "list.csv:5: name holds a control character: the cell has a line break",
            "list.csv:7: name is missing",
            "list.csv:8: domain is missing",
            "list.csv:9: categories needs at least 1 entry; --category gives one to rows without any",
            "list.csv:10: the row is longer than the header by 1: quote cells that hold the delimiter",
            "list.csv:11: id is already the id of line 2, made from the same domain",
            "Nothing was written: 7 bad rows: correct them, or leave them out by --skip-invalid.",
        ],
        False,
    )
    skipped = given.run(text, "--skip-invalid", "--json")
    assert (skipped.exit_code, json.loads(skipped.stdout)) == (
        0,
        {
            "directory": str(given.made), "shops": 1, "not_public": 0, "bad_rows": 7,
            "columns": {
                "mapped": {"name": "name", "domain": "url", "categories": "category"}, "unused": [], "delimiter": ",",
            },
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "name,url,category,country\nA,a.example,X,Deutschland\nB,b.example,X,Germany\n",
            "countries must hold assigned ISO 3166-1 alpha-2 codes (or XK) in capitals, or English names",
        ),
        (
            "name,url,Kategorie\nA,a.example,X\n",
            (
                "categories needs at least 1 entry; --map COLUMN=categories names their column, --category gives one "
                "to rows without any"
            ),
        ),
    ],
)
def test_a_bad_row_is_reported_with_what_a_csv_may_hold_instead(given: Import, text: str, problem: str) -> None:
    assert given.run(text).stderr.splitlines()[0] == f"list.csv:2: {problem}"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_first_line_that_states_the_delimiter_is_read_and_counted(given: Import, line_end: str) -> None:
    rows = ["sep=;", "name;url;category", "A, B, C;a.example;X", ";b.example;X"]
    refused = given.run(line_end.join([*rows, ""]))
    assert refused.stderr.splitlines()[0] == "list.csv:4: name is missing"
    (shop,) = given.shops(line_end.join([*rows[:3], ""]))
    assert (shop["name"], shop["domain"]) == ("A, B, C", "a.example")


def test_a_fault_of_many_rows_is_named_for_the_first_five_and_counted(given: Import) -> None:
    rows = "".join(f"S{number},s{number}.example,X,many\n" for number in range(1_002))
    refused = given.run(f"name,url,category,visits\n{rows}T,nohost,X,1\n")
    assert refused.stderr.splitlines() == [
        *(f"list.csv:{line}: popularity must be a number or null" for line in range(2, 7)),
        "list.csv:1004: domain must be a host name with at least two labels",
        "list.csv: popularity must be a number or null (997 more rows)",
        "Nothing was written: 1,003 bad rows: correct them, or leave them out by --skip-invalid.",
    ]


@pytest.mark.parametrize(("delimiter", "decimal"), [(";", "0,25"), ("\t", "0,25"), (";", "0.25"), (",", '"0.25"')])
def test_a_decimal_comma_is_read_where_cells_are_not_separated_by_commas(
    given: Import, delimiter: str, decimal: str
) -> None:
    rows = [("name", "url", "category", "visits"), ("A", "a.example", "Books", decimal)]
    (shop,) = given.shops("".join(f"{delimiter.join(row)}\n" for row in rows))
    assert shop["popularity"] == 0.25


def test_the_mapping_may_be_stated_and_a_category_given(given: Import) -> None:
    text = "title,Firma,url,Seite\nno,Nord,no.example,nord.example\n"
    options = ("--map", "Firma=name", "--map", "seite=domain", "--category", "Shops")
    (shop,) = given.shops(text, *options)
    assert (shop["name"], shop["domain"], shop["categories"][0]["slug"]) == ("Nord", "nord.example", "shops")


@pytest.mark.parametrize(
    ("header", "stated", "message"),
    [
        (["a", "url", ""], (), "no column is recognised as the name (there are: a, url): name it by --map COLUMN=name"),
        (["a"], (), "name or the domain (there are: a): name it by --map COLUMN=name --map COLUMN=domain"),
        (["name", "url"], ("nam=id",), "--map 'nam=id' is wrong: it must be COLUMN=FIELD, with a column of the file"),
        (["name", "url"], ("name=nom",), "and a field (id, name, domain, "),
        (["name", "url"], ("name",), "is wrong"),
        (["name", "url"], ("url=",), "no column is recognised as the domain"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(header: list[str], stated: tuple[str, ...], message: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        columns_of(header, stated)
    assert message in str(refused.value)


STATUS: Final = "Name;Website;Status\n" + "".join(
    f"Shop {number};shop{number}.example;{status}\n"
    for number, status in enumerate(["aktiv"] * 5 + ["gesperrt"] * 2 + ["it's over"])
)
OVER: Final = """--map-value 'Status:it'"'"'s over=under_review'"""
NAMED: Final = "--map-value Status:aktiv=public --map-value Status:gesperrt=under_review"


@pytest.mark.rule("V1")
def test_a_column_that_looks_like_a_status_stops_the_import_with_what_to_type(given: Import) -> None:
    done = given.run(STATUS, "--category", "Home")
    assert (done.exit_code, given.made.exists()) == (1, False)
    assert done.stderr.splitlines()[-1] == (
        """Nothing was written: the column 'Status' looks as if it said which shops are suspended ('aktiv' 5,"""
        """ 'gesperrt' 2, "it's over" 1), and nothing maps it, so that all of them would be public: say what its"""
        f""" values mean, such as `{NAMED} {OVER}`, or publish all of them by `--map Status=`."""
    )


@pytest.mark.rule("V1")
@pytest.mark.parametrize("mapping", [("--map", "Status=visibility"), ()])
def test_values_of_a_status_mean_what_is_stated_and_unknown_ones_are_listed(
    given: Import, mapping: tuple[str, ...]
) -> None:
    options = ("--category", "Home", *mapping, *NAMED.split())
    refused = given.run(STATUS, *options)
    assert (refused.exit_code, given.made.exists()) == (1, False)
    assert refused.stderr.splitlines()[-1] == (
        "Nothing was written: the column 'Status' has values that are no visibility (\"it's over\" 1): say what they"
        f""" mean, such as `{OVER}`, or leave these rows out by --skip-invalid."""
    )
    shops = given.shops(STATUS, *options, "--map-value", "status:IT'S OVER=removed")
    assert [shop["visibility"] for shop in shops] == ["public"] * 5 + ["under_review"] * 2 + ["removed"]


def test_the_import_says_how_many_shops_are_not_public_and_leaves_rows_of_unknown_status_out(given: Import) -> None:
    done = given.run(STATUS, "--category", "Home", *NAMED.split(), "--skip-invalid")
    assert done.stdout.splitlines()[-3].startswith("Wrote 7 shops (2 of them not public) to ")
    given.made.joinpath("shops.ndjson").unlink()
    answer = json.loads(given.run(STATUS, "--category", "Home", *NAMED.split(), "--skip-invalid", "--json").stdout)
    assert (answer["shops"], answer["not_public"], answer["bad_rows"]) == (7, 2, 1)


def test_a_status_that_is_left_out_on_purpose_publishes_all_shops(given: Import) -> None:
    assert {shop["visibility"] for shop in given.shops(STATUS, "--category", "Home", "--map", "Status=")} == {"public"}


@pytest.mark.parametrize(
    ("column", "values", "suggested"),
    [
        ("Händlerstatus", ["1", "2"], "Händlerstatus:1=under_review Händlerstatus:2=under_review"),
        ("is_active", ["1", "0"], "is_active:1=public is_active:0=under_review"),
        ("Gesperrt", ["ja", "nein"], "Gesperrt:ja=under_review Gesperrt:nein=public"),
        ("Bemerkung", ["actif", "supprimé", ""], "Bemerkung:actif=public Bemerkung:supprimé=removed"),
        ("Remark", ["", "", "suspended"], "Remark:suspended=under_review"),
        ("Remark", ["a", "b", "c", "suspended"], None),
        ("State", ["CA", "NY"], None),
        ("Active since", ["2020", "2021"], None),
        ("Status", ["", ""], None),
    ],
)
def test_a_status_is_recognised_by_its_name_or_its_values_in_several_languages(
    given: Import, column: str, values: list[str], suggested: str | None
) -> None:
    rows = "".join(f"Shop {at},shop{at}.example,{value}\n" for at, value in enumerate(values))
    done = given.run(f"Name,Website,{column}\n{rows}", "--category", "Home")
    typed = None if suggested is None else " ".join(f"--map-value '{one}'" for one in suggested.split())
    said = done.stderr.partition("such as `")[2].partition("`")[0].replace("'", "") or None
    assert (done.exit_code, said) == (int(suggested is not None), typed and typed.replace("'", ""))


@pytest.mark.rule("V1")
def test_a_long_value_of_a_status_is_cut_in_messages(given: Import) -> None:
    done = given.run(f"Name,Website,Status\nA,a.example,{'x' * 61}\n", "--category", "Home")
    assert (f"('{'x' * 60}' 1)" in done.stderr, "x" * 61 in done.output) == (True, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--map-value", "Status:a=hidden"), "--map-value 'Status:a=hidden' is wrong: it must be COLUMN:VALUE=VISIB"),
        (
            ("--map-value", "Other:a=public"),
            "--map-value 'Other:a=public' is wrong: it must be COLUMN:VALUE=VISIBILITY",
        ),
        (("--map-value", "Status:a=public", "--map", "Status="), "--map says that 'Status' is not"),
        (("--map-value", "Status:a=public", "--map-value", "Name:a=public"), "names several columns (Name, Status)"),
    ],
)
def test_a_meaning_that_does_not_fit_is_refused(given: Import, options: tuple[str, ...], message: str) -> None:
    done = given.run(STATUS, *options)
    assert (done.exit_code, message in done.stderr, given.made.exists()) == (1, True, False)


def test_of_several_columns_for_a_field_the_usual_one_is_taken_and_the_others_are_not_used() -> None:
    columns = columns_of(["URL", "Domain", "Brand", "Name", "Name"], ())
    assert dict(columns.positions) == {"domain": 1, "name": 3}
    assert columns.unused == ("URL", "Brand", "Name")


def test_columns_of_one_name_are_shown_with_their_numbers_and_those_without_a_name_are_counted() -> None:
    lines = columns_of(["name", "url", "Category", "category", "Note", "", ""], ()).as_text().splitlines()
    assert [line for line in lines if "ategor" in line] == [
        "  categories      column 'Category' (column 3)",
        "  not used        'category' (column 4), 'Note', 2 without a name",
    ]


def test_an_id_is_made_from_the_domain_the_same_for_each_of_its_forms() -> None:
    assert {id_of(form) for form in ("nord.example", "https://www.Nord.example:443/x", "nord.example.")} == {
        "nord_example"
    }
    long = f"{'a' * 60}.{'b' * 60}.example"
    assert (len(id_of(long)), id_of(long) == id_of(f"{'a' * 60}.{'c' * 60}.example"), id_of("")) == (64, False, "")


def test_countries_are_known_by_code_and_english_name() -> None:
    codes = {text: country_code(text) for text in ("de", "DEU", "Germany", "UK", "Kosovo", "worldwide", "Atlantis")}
    assert list(codes.values()) == ["DE", "DE", "DE", "GB", "XK", "WORLDWIDE", "ATLANTIS"]


def test_a_slug_is_spelt_in_ascii() -> None:
    assert [slug_of(name) for name in ("Home & Living", "Bücher", "本", "—", "x" * 120)] == [
        "home-living", "bucher", "ben", "", "x" * 100,
    ]  # fmt: skip


def test_a_file_that_is_empty_missing_or_has_no_rows_is_refused(given: Import) -> None:
    empty, bare = given.run(""), given.run("name,url,category\n")
    given.file.unlink()
    gone = CliRunner().invoke(catalogue, ["from-csv", str(given.file), str(given.made)])
    assert [done.stderr for done in (empty, bare, gone)] == [
        f"Nothing was written: {given.file} is empty: its first line must name the columns.\n",
        "Nothing was written: the file has no row that is a shop.\n",
        f"Nothing was written: {given.file} cannot be read: No such file or directory.\n",
    ]
    assert not given.made.exists()


@pytest.mark.parametrize("blank", ["\n", " \r\n", "\r", "\t" * 100 + "\n"])
def test_blank_lines_between_rows_are_skipped_and_counted(given: Import, blank: str) -> None:
    number = 1024 * 1024 // len(blank)
    text = f'name,domain,category\n{blank * number}"A\n",a.example,\nB,b.example,\nC,c.example,c\n'
    refused = given.run(text, "--skip-invalid")
    lines = [line.partition(" ")[0] for line in refused.stderr.splitlines()]
    assert lines == [f"list.csv:{number + 2}:", f"list.csv:{number + 4}:"]
