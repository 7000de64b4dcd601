"""`catalogue from-csv`: which column is what, what becomes of cells, and which rows are bad."""

import json
from typing import Final

import pytest
from typer.testing import CliRunner

from indexer.catalogue.sheets.cells import country_code, slug_of
from indexer.catalogue.sheets.columns import columns_of
from indexer.catalogue.sheets.records import id_of
from indexer.commands.catalogue import catalogue
from indexer.records.problems import CatalogueError
from tests.unit.indexer.catalogue.imports import Import


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
    shown = given.run(text).stdout.splitlines()
    assert shown[:5] == [
        "Encoding utf-8",
        "Columns:",
        "  id              column 'Shop_ID'",
        "  name            column 'Shop Name'",
        "  domain          column 'Website'",
    ]
    assert shown[-4:] == [
        "  not used        'Comment'",
        f"Wrote 1 shop to {given.made / 'shops.ndjson'}; 0 bad rows were left out. Next:",
        f"  shop-directory catalogue validate {given.made}",
        f"  shop-directory index build --catalogue {given.made}",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_spreadsheets_write_is_read(given: Import, encoding: str) -> None:
    (shop,) = given.shops("name,url,category\nCafé 緑,a.example,Bücher\n".encode(encoding))
    assert (shop["name"], shop["categories"]) == ("Café 緑", [{"slug": "bucher", "name": "Bücher"}])


@pytest.mark.parametrize(
    ("encoding", "names"),
    [
        ("cp1252", ["Müller Möbel", "Café “Élysée”", "Größenwahn – Übergrößen", "Señor Niño", "10 € Laden"]),
        ("cp1250", ["Żółta łódź", "Gdańskie książki", "Świat mebli Poznań", "Kuźnia wyśmienitych smaków"]),
        ("cp1251", ["Магазин одежды", "Книжный мир", "Спортивные товары", "Детский сад игрушек"]),
        ("cp1253", ["Βιβλιοπωλείο της Αθήνας", "Ηλεκτρονικά είδη", "Παπούτσια και τσάντες"]),
        ("cp932", ["東京書店", "家電のお店", "おもちゃとゲームの専門店", "日本酒の通販"]),
        ("gb18030", ["北京书店", "家用电器商城", "儿童玩具专卖店", "上海服装批发市场"]),
    ],
)
def test_the_encoding_of_a_spreadsheet_is_found_and_shown_with_a_cell_read_by_it(
    given: Import, encoding: str, names: list[str]
) -> None:
    rows = "".join(f"{name};shop{at}.example;Books\r\n" for at, name in enumerate(names))
    text = f"name;url;category\r\n{rows}".encode(encoding)
    assert [shop["name"] for shop in given.shops(text)] == names
    printed = given.run(text).stdout.splitlines()[0]
    found_by = json.loads(given.run(text, "--json").stdout)["columns"]["found_by"]
    assert found_by in names
    assert printed.startswith(f"Encoding {encoding}, found by {found_by!r}")
    assert printed.endswith("; --encoding names another")
    assert given.shops(text, "--encoding", encoding)[0]["name"] == names[0]


@pytest.mark.rule("V1.shown")
def test_the_cell_that_shows_an_encoding_is_cut(given: Import) -> None:
    note = "Möbel und Gemüse für Größe " * 5
    printed = given.run(f"name,url,category,note\nA,a.example,X,{note}\n".encode("cp1252")).stdout.splitlines()[0]
    assert printed.startswith(f"Encoding cp1252, found by {note[:60]!r}")


def test_the_euro_sign_is_read_where_no_other_letter_is_beyond_ascii(given: Import) -> None:
    rows = "".join(f"shop{at}.example;Books;Mug 12,50 €\r\n" for at in range(3))
    names = [shop["name"] for shop in given.shops(f"url;category;name\r\n{rows}".encode("cp1252"))]
    assert names == ["Mug 12,50 €"] * 3


def test_a_cell_shows_that_an_encoding_that_fits_as_well_reads_differently(given: Import) -> None:
    text = "name,url,category\nMöbel,a.example,X\nŞişli Mağazası,b.example,X\nÇiçek Işık,c.example,X\n".encode("cp1254")
    printed = given.run(text).stdout.splitlines()[0]
    assert printed.startswith("Encoding cp1252, found by 'Þiþli Maðazasý' (it would be 'Şişli Mağazası' in cp1254")
    assert given.shops(text, "--encoding", "windows-1254")[1]["name"] == "Şişli Mağazası"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "name,url\nCafé,a.example\nBücher,b.example\nÖl,c.example\n".encode() * 9 + b"\xfc,d.example\n",
            (),
            "list.csv is UTF-8, but for its line 37: correct that line, or name its encoding by --encoding.",
        ),
        (
            b"name,url\n\xfc,a.example\n",
            ("--encoding", "utf-8"),
            "holds bytes that are not utf-8: name its encoding by",
        ),
        (
            b'name,url,category,note\nA,a.example,X,"5\nB,b.example,X,\nC,c.example,X,\n',
            (),
            "list.csv, in the row that begins in line 2: a quoted cell does not end before the delimiter, or is too",
        ),
        (
            b'name,url,category,note\nA,a.example,X,"5\nB,b.example,X,"b"\nC,c.example,X,\n',
            (),
            "list.csv, in the row that begins in line 2: a quoted cell does not end before the delimiter, or is too",
        ),
        (b"name,url\n", ("--encoding", "zebra"), "--encoding 'zebra' is none that is known: name one such as cp1252"),
        (b"name,url\n", ("--sheet", "Shops"), "list.csv is not a workbook, so it has no sheets: leave --sheet out."),
        (
            b"name,url\n",
            ("--hidden-rows", "skip"),
            "list.csv is not a workbook, so it has no hidden rows: leave --hidden-rows out.",
        ),
        (b"PK\x03\x04 but nothing more", (), "list.csv is not a readable workbook ("),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_what_to_do(
    given: Import, text: bytes, options: tuple[str, ...], message: str
) -> None:
    assert message in given.refused(text, *options)


@pytest.mark.rule("V1.shown")
def test_bad_rows_are_reported_by_line_field_and_value_and_nothing_is_written_unless_they_are_skipped(
    given: Import,
) -> None:
    text = (
        'name,url,category\nA,a.example,X\nzqcanaryzq,nohost,X\n\n"C\nC",c.example,X\n,d.example,X\nE,,X\n'
        "F,f.example,\nG,g.example,X,1\nH,www.A.example,X\n"
    )
    refused = given.run(text)
    assert (refused.exit_code, refused.stderr.splitlines(), given.made.exists()) == (
        1,
        [
            "list.csv:3: domain must be a host name with at least two labels: 'nohost'",
            "list.csv:5: name holds a control character: the cell has a line break: 'C\\nC'",
            "list.csv:7: name is missing",
            "list.csv:8: domain is missing",
            "list.csv:9: categories is missing; --category gives one to rows without any",
            "list.csv:10: the row is longer than the header: quote cells that hold the delimiter: '1'",
            "list.csv:11: id is already that of another row, made from the same domain: 'a_example of line 2'",
            "Nothing was written: 7 bad rows: correct them, or leave them out by --skip-invalid.",
        ],
        False,
    )
    skipped = given.run(text, "--skip-invalid", "--json")
    answer = json.loads(skipped.stdout)
    problems = answer.pop("problems")
    assert (len(problems), problems[0]) == (
        7,
        {
            "field": "domain", "reason": "must be a host name with at least two labels", "rows": 1, "line": 3,
            "values": [{"value": "nohost", "rows": 1, "line": 3}],
        },
    )  # fmt: skip
    assert (skipped.exit_code, answer) == (
        0,
        {
            "directory": str(given.made), "shops": 1, "not_public": 0, "bad_rows": 7, "joined_rows": 0,
            "dropped_fields": {}, "notes": [],
            "columns": {
                "mapped": {"name": "name", "domain": "url", "categories": "category"}, "set": {}, "unused": [],
                "encoding": "utf-8", "delimiter": ",",
            },
        },
    )  # fmt: skip


_HIDDEN_ROWS: Final = {
    "no name": "lamp,,lamp.example,X,DE,removed",
    "no domain": "lamp,Zq,nowhere,X,DE,removed",
    "too long": "lamp,Zq,lamp.example,X,DE,under_review,more",
    "an id that is none": "la mp,Zq,https://LAMP.example/,X,DE,under_review",
    "no id": ",Zq,lamp.example,,DE,under_review",
}


@pytest.mark.rule("V1")
@pytest.mark.parametrize("bad", _HIDDEN_ROWS.values(), ids=list(_HIDDEN_ROWS))
@pytest.mark.parametrize("first", [True, False])
def test_a_bad_row_that_hides_a_shop_leaves_out_the_row_that_shows_it(given: Import, bad: str, *, first: bool) -> None:
    rows = ["lamp,Lamp,lamp.example,X,DE,public", "book,Book,book.example,X,DE,public"]
    rows.insert(0 if first else 2, bad)
    text = "\n".join(["id,name,url,category,country,visibility", *rows, ""])
    done = given.run(text, "--skip-invalid")
    assert (done.exit_code, "2 bad rows were left out" in done.stdout) == (0, True), done.stderr
    line = 2 if first else 4
    assert f"is that of line {line}, a bad row that is not public: neither is used: 'lamp" in done.stderr
    written = given.written()
    assert [one["id"] for one in written] == ["book"]


@pytest.mark.rule("V1")
def test_a_bad_row_that_shows_a_shop_leaves_out_no_other(given: Import) -> None:
    rows = "lamp,,lamp.example,X,public\nlamp,Lamp,lamp.example,X,public\n"
    done = given.run(f"id,name,url,category,visibility\n{rows}", "--skip-invalid")
    assert (done.exit_code, "1 bad row was left out" in done.stdout) == (0, True), done.stdout


@pytest.mark.rule("V1")
def test_of_a_row_that_shows_a_shop_and_one_that_hides_it_the_latter_is_used_and_all_are_listed(given: Import) -> None:
    rows = ["A,a.example,X,public", "A,a.example,X,under_review", "B,b.example,X,removed", "B,b.example,X,public"]
    rows += ["C,c.example,X,removed", "C,c.example,X,removed", "D,d.example,X,public", "D,d.example,X,public"]
    rows += ["A,a.example,X,public", "A,a.example,X,removed"]
    text = "\n".join(["name,url,category,visibility", *rows, ""])
    refused = given.refused(text)
    done = given.run(text, "--skip-invalid")
    assert (done.exit_code, "6 bad rows were left out" in done.stdout) == (0, True)
    same = "id is already that of another row, made from the same domain"
    for said in (refused, done.stderr):
        assert (
            f"{same}, which is not public and is used instead:"
            " 'a_example of line 3' (2 rows, first 2), 'b_example of line 4' (line 5)\n"
        ) in said
        others = "'c_example of line 6' (line 7), 'd_example of line 8' (line 9), 'a_example of line 3' (line 11)\n"
        assert f"{same}: {others}" in said
    written = given.written()
    assert [(one["id"], one["visibility"]) for one in written] == [
        ("a_example", "under_review"), ("b_example", "removed"), ("c_example", "removed"),
        ("d_example", "public"),
    ]  # fmt: skip


@pytest.mark.rule("V1")
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 3, 0, 1), (0, 2, 1, 3), (2, 0, 1, 3)])
def test_rows_of_a_hidden_shop_are_joined_without_those_that_show_it(given: Import, order: tuple[int, ...]) -> None:
    rows = [
        "A,a.example,X,DE,public",
        "A,a.example,X,FR,public",
        "A,a.example,X,AT,removed",
        "A,a.example,Y,CH,removed",
    ]
    text = "\n".join(["name,url,category,country,visibility", *(rows[at] for at in order), ""])
    done = given.run(text, "--skip-invalid", "--json")
    answer = json.loads(done.stdout)
    (written,) = given.written()
    assert (written["visibility"], written["countries"]) == ("removed", ["AT", "CH"])
    assert [one["name"] for one in written["categories"]] == ["X", "Y"]
    assert [answer[name] for name in ("shops", "not_public", "bad_rows", "joined_rows")] == [1, 1, 2, 1]
    assert all("is not public and is used instead" in problem["reason"] for problem in answer["problems"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "name,url,category,country\nA,a.example,X,Deutschland;Atlantis\n",
            "countries must be codes (ISO 3166-1 alpha-2) or names of countries: 'Atlantis'",
        ),
        ("name,url,category,visits\nA,a.example,X,1.234\n", "popularity must be a number such as 12.5: '1.234'"),
        (
            "name,url,Gruppe\nA,a.example,X\n",
            (
                "categories is missing; --map COLUMN=categories names their column, --category gives one "
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
    assert given.refused(line_end.join([*rows, ""])).splitlines()[0] == "list.csv:4: name is missing"
    (shop,) = given.shops(line_end.join([*rows[:3], ""]))
    assert (shop["name"], shop["domain"]) == ("A, B, C", "a.example")


def test_a_fault_of_many_rows_is_one_line_with_its_values_counted(given: Import) -> None:
    rows = "".join(f"S{number},s{number}.example,X,many\n" for number in range(1_002))
    assert given.refused(f"name,url,category,visits\n{rows}T,nohost,X,1\n").splitlines() == [
        "list.csv:2: popularity must be a number such as 12.5: 'many' (1,002 rows, first 2)",
        "list.csv:1004: domain must be a host name with at least two labels: 'nohost'",
        (
            "Nothing was written: 1,003 bad rows: correct them, or leave them out by --skip-invalid (it keeps 1,002 of"
            " them without the wrong fields)."
        ),
    ]


@pytest.mark.parametrize(("delimiter", "decimal"), [(";", "0,25"), ("\t", "0,25"), (";", "0.25"), (",", '"0,25"')])
def test_a_decimal_comma_is_read(given: Import, delimiter: str, decimal: str) -> None:
    rows = [("name", "url", "category", "visits"), ("A", "a.example", "Books", decimal)]
    (shop,) = given.shops("".join(f"{delimiter.join(row)}\n" for row in rows))
    assert shop["popularity"] == 0.25


@pytest.mark.parametrize(
    ("header", "mapped"),
    [
        ("Firma;Webseite;Branche;Länder", {"name": 0, "domain": 1, "categories": 2, "countries": 3}),
        ("Pays;Nom du magasin;Site web;Catégories", {"countries": 0, "name": 1, "domain": 2, "categories": 3}),
        ("Firma;Shop;Händler;URL;Webseite", {"name": 1, "domain": 3}),
        ("Händler;Firma;Hemsida", {"name": 0, "domain": 2}),
    ],
)
def test_columns_are_recognised_in_other_languages_after_english(header: str, mapped: dict[str, int]) -> None:
    assert columns_of(header.split(";"), ()).positions == mapped


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
    done = given.refused(STATUS, "--category", "Home")
    assert done.splitlines()[-1] == (
        """Nothing was written: the column 'Status' looks as if it said which shops are suspended ('aktiv' 5,"""
        """ 'gesperrt' 2, "it's over" 1), and nothing maps it, so that all of them would be public: say what its"""
        f""" values mean, such as `{NAMED} {OVER}`, or publish all that were not hidden before by `--map Status=`."""
    )


@pytest.mark.rule("V1")
@pytest.mark.parametrize("mapping", [("--map", "Status=visibility"), ()])
def test_values_of_a_status_mean_what_is_stated_and_unknown_ones_are_listed(
    given: Import, mapping: tuple[str, ...]
) -> None:
    options = ("--category", "Home", *mapping, *NAMED.split())
    refused = given.refused(STATUS, *options)
    assert refused.splitlines()[-1] == (
        "Nothing was written: the column 'Status' has values that are no visibility (\"it's over\" 1): say what they"
        f""" mean, such as `{OVER}`, or leave these rows out by --skip-invalid."""
    )
    shops = given.shops(STATUS, *options, "--map-value", "status:IT'S OVER=removed")
    assert [shop["visibility"] for shop in shops] == ["public"] * 5 + ["under_review"] * 2 + ["removed"]


def test_the_import_says_how_many_shops_are_not_public_and_leaves_rows_of_unknown_status_out(given: Import) -> None:
    done = given.run(STATUS, "--category", "Home", *NAMED.split(), "--skip-invalid")
    assert done.stdout.splitlines()[-3].startswith("Wrote 7 shops (2 of them not public) to ")
    answer = json.loads(given.run(STATUS, "--category", "Home", *NAMED.split(), "--skip-invalid", "--json").stdout)
    assert (answer["shops"], answer["not_public"], answer["bad_rows"]) == (7, 2, 1)


@pytest.mark.rule("V1")
def test_a_status_stops_the_import_where_another_column_has_the_visibility(given: Import) -> None:
    text = "name,url,category,active,blocked\nA,a.example,X,yes,no\nB,b.example,X,yes,yes\n"
    done = given.refused(text, "--map-value", "active:yes=public")
    assert done == (
        "Nothing was written: the column 'blocked' looks as if it said which shops are suspended ('no' 1, 'yes' 1), and"
        " the visibility is read from 'active' alone: put both into one column, or leave this one out by"
        " `--map blocked=`.\n"
    )
    assert len(given.shops(text, "--map-value", "active:yes=public", "--map", "blocked=")) == 2


def test_columns_that_are_left_out_on_purpose_publish_all_shops(given: Import) -> None:
    assert {shop["visibility"] for shop in given.shops(STATUS, "--category", "Home", "--map", "Status=")} == {"public"}
    text = "name,url,category,Status,Status\nA,a.example,X,aktiv,aktiv\n"
    assert len(given.shops(text, "--map", "Status=")) == 1


@pytest.mark.parametrize(
    ("column", "values", "suggested"),
    [
        ("Händlerstatus", ["1", "2"], "Händlerstatus:1=under_review Händlerstatus:2=under_review"),
        ("is_active", ["1", "0"], "is_active:1=public is_active:0=under_review"),
        ("Gesperrt", ["ja", "nein"], "Gesperrt:ja=under_review Gesperrt:nein=public"),
        ("Bemerkung", ["actif", "supprimé", ""], "Bemerkung:actif=public Bemerkung:supprimé=removed"),
        ("Remark", ["", "", "suspended"], "Remark:suspended=under_review"),
        ("Hidden", ["yes", "no"], "Hidden:yes=under_review Hidden:no=public"),
        ("Visible", ["yes", "no"], "Visible:yes=public Visible:no=under_review"),
        ("deleted_at", ["", "2026-01-02"], "deleted_at:2026-01-02=under_review"),
        ("Active-(Y/N)", ["Y", "N"], "Active-(Y/N):Y=public Active-(Y/N):N=under_review"),
        ("Review", ["live", "pending"], "Review:live=public Review:pending=under_review"),
        ("State", ["public", "under_review"], "State:public=public State:under_review=under_review"),
        ("isActive", ["true", "false"], "isActive:true=public isActive:false=under_review"),
        ("Live", ["1", "0"], "Live:1=public Live:0=under_review"),
        ("show_on_site", ["1", "0"], "show_on_site:1=public show_on_site:0=under_review"),
        ("DoNotPublish", ["yes", ""], "DoNotPublish:yes=under_review"),
        ("nicht-anzeigen", ["", "x"], "nicht-anzeigen:x=under_review"),
        ("Exclude", ["n", "y"], "Exclude:n=public Exclude:y=under_review"),
        ("Sperre", ["0", "1"], "Sperre:0=public Sperre:1=under_review"),
        ("Masqué", ["oui", "non"], "Masqué:oui=under_review Masqué:non=public"),
        ("Kündigung", ["", "01.02.2026"], "Kündigung:01.02.2026=under_review"),
        ("状态", ["停用"], "状态:停用=under_review"),
        ("Live chat", ["yes", "no"], None),
        ("Free delivery", ["yes", "no"], None),
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
    assert message in given.refused(STATUS, *options)


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


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("DE", "de|DEU|Germany|Deutschland|Allemagne|Alemania|Niemcy|ドイツ|德国|Германия|ألمانيا|Almanya|Saksa"),
        ("GB", "UK|gb|Great Britain|Royaume-Uni|Vereinigtes Königreich|Storbritannien|英国"),
        ("US", "USA|United States|États-Unis|Vereinigte Staaten|미국"),
        ("KR", "Korea, Republic of|South Korea|Südkorea"),
        ("XK", "Kosovo|XK"),
        ("WORLDWIDE", "worldwide|weltweit|World|Welt"),
        ("EU", "EU|Europäische Union"),
        (None, "Atlantis|||UKR USA|Kongo|-"),
    ],
)
def test_countries_are_known_by_code_and_by_their_names_in_any_language(code: str | None, texts: str) -> None:
    assert {text: country_code(text) for text in texts.split("|")} == dict.fromkeys(texts.split("|"), code)


@pytest.mark.parametrize(
    "cell", ["CA / United States", "CA;US", "ca|Vereinigte Staaten", '"Kanada, USA"', "Canada/us/CA"]
)
def test_countries_are_separated_by_slashes_semicolons_bars_and_commas(given: Import, cell: str) -> None:
    (shop,) = given.shops(f"name,url,category,country\nA,a.example,X,{cell}\n")
    assert shop["countries"] == ["CA", "US"]


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
        "Nothing was written: the file has no row that is one of the shops.\n",
        f"Nothing was written: {given.file} cannot be read: No such file or directory.\n",
    ]
    assert not given.made.exists()


@pytest.mark.parametrize("blank", ["\n", " \r\n", "\r", "\t" * 100 + "\n"])
def test_blank_lines_between_rows_are_skipped_and_counted(given: Import, blank: str) -> None:
    number = 1024 * 1024 // len(blank)
    text = f'name,domain,category\n{blank * number}"A\n",a.example,\nB,nohost,b\nC,c.example,c\n'
    refused = given.run(text, "--skip-invalid")
    lines = [line.partition(" ")[0] for line in refused.stderr.splitlines()]
    assert lines == [f"list.csv:{number + 2}:", f"list.csv:{number + 4}:"]


MESSY: Final = (
    "name;url;category;country;visits;aliases\n"
    "A;a.example;X;Deutschland;12;\nB;b.example;X;Atlantis;1,234;\nC;c.example;X;DE/Atlantis;7;\nD;;X;Lemuria;1;\n"
)


@pytest.mark.rule("V1.shown")
def test_optional_fields_that_cannot_be_read_are_dropped_and_counted_and_their_shops_are_kept(given: Import) -> None:
    refused = given.run(MESSY)
    unreadable = [
        (
            "list.csv:3: countries must be codes (ISO 3166-1 alpha-2) or names of countries: 'Atlantis' (2 rows, first"
            " 3), 'Lemuria' (line 5)"
        ),
        "list.csv:3: popularity must be a number such as 12.5: '1,234'",
        "list.csv:5: domain is missing",
    ]
    assert (refused.exit_code, refused.stderr.splitlines()) == (
        1,
        [
            *unreadable,
            (
                "Nothing was written: 3 bad rows: correct them, or leave them out by --skip-invalid (it keeps 2 of them"
                " without the wrong fields)."
            ),
        ],
    )
    assert json.loads(given.run(MESSY, "--json").stdout)["problems"][0]["values"][0] == {
        "value": "Atlantis", "rows": 2, "line": 3,
    }  # fmt: skip
    assert not given.made.exists()
    done = given.run(MESSY, "--skip-invalid")
    assert (done.stderr.splitlines(), done.stdout.splitlines()[-3]) == (
        unreadable,
        (
            f"Wrote 3 shops to {given.made / 'shops.ndjson'}; 1 bad row was left out, and the fields 2 countries,"
            " 1 popularity of others. Next:"
        ),
    )
    kept = given.shops(MESSY, "--skip-invalid")
    assert [(shop["name"], shop["countries"], shop.get("popularity")) for shop in kept] == [
        ("A", ["DE"], 12), ("B", [], None), ("C", [], 7),
    ]  # fmt: skip


@pytest.mark.rule("V1.shown")
def test_at_most_sixty_characters_of_twenty_values_of_a_fault_are_shown(given: Import) -> None:
    rows = "".join(f"S,s{at}.example,X,{'x' * 60}{at}\n" for at in range(22))
    (line, _) = given.run(f"name,url,category,country\n{rows}\u202eS,nohost,X,\n").stderr.splitlines()[:2]
    assert line.count(f"'{'x' * 60}' (line ") == 20
    assert line.endswith(", 2 rows with other values")
