"""Columns of `catalogue from-csv`: which limit a code, whose rows belong together, and what is stated once for all."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.catalogue.sheets.columns import columns_of
from tests.unit.indexer.catalogue.imports import Catalogue, Import

COUPONS: Final = ("--kind", "coupons")
LIMITS: Final = {
    "countries": (
        "Regions|Valid In|Countries|regions.list|regions.list.0.countryCode|validIn|Region|Gültig in|Länder|"
        "Valable en|Régions|Válido en|Regiones|Valido in|Regioni|Geldig in|Ważne w|Regiony|Válido em|Regiões|"
        "Geçerli ülkeler|Giltig i"
    ),
    "blocked_countries": (
        "Excluded Regions|Excluded Countries|excludedCountries|excluded_regions.list|Ausgeschlossene Länder|"
        "Pays exclus|Países excluidos|Paesi esclusi|Uitgesloten landen|Wykluczone kraje|Países excluídos|Hariç ülkeler|"
        "Undantagna länder"
    ),
    "min_order": (
        "Minimum Spend|minimum_amount|min order|minimumSpend|Min. order (EUR)|min_order.amount|Minimum purchase|"
        "Mindestumsatz|Mindestbestellwert|Montant minimum|Importe mínimo|Importo minimo|Minimumbedrag|Minimalna kwota|"
        "Valor mínimo|Minimum tutar|Minsta belopp"
    ),
}


@pytest.mark.parametrize(("field", "name"), [(field, name) for field in LIMITS for name in LIMITS[field].split("|")])
def test_a_column_that_limits_a_code_is_known_by_its_name(field: str, name: str) -> None:
    assert columns_of(["shop", "code", name], (), "coupons").positions == {"shop_id": 0, "code": 1, field: 2}


def test_the_limits_of_a_code_are_read(stocked: Catalogue) -> None:
    text = (
        "shop,code,Regions,Excluded Regions,Minimum Spend\n"
        "lamp,A,Germany,,50 EUR\nlamp,B,EU + CH,Malta & Cyprus,ab 20 €\nlamp,C,All,none,No minimum\n"
        'lamp,D,"Germany and Austria",n/a,min. 0.00\n'
    )
    found = stocked.records("coupons", text)
    said = [(one["countries"], one["blocked_countries"], one.get("min_order", {}).get("amount")) for one in found]
    assert said[0] == (["DE"], [], "50")
    assert (len(said[1][0]), said[1][0][-1], said[1][1:]) == (28, "CH", (["MT", "CY"], "20"))
    assert said[2:] == [(["WORLDWIDE"], [], None), (["DE", "AT"], [], None)]
    (norway,) = stocked.records("coupons", "shop,code,Excluded Countries\nlamp,A,NO\n")
    assert norway["blocked_countries"] == ["NO"]


@pytest.mark.parametrize(
    ("cells", "held"),
    [
        (("Germany", "Austria", "?"), "countries or regions"),
        (("DE, AT", "CH"), "countries or regions"),
        (("Europe", "DACH"), "countries or regions"),
        (("50 EUR", "£20", "see terms"), "amounts of money"),
        (("50.00", "20.00"), "amounts of money"),
        (("min. 50 EUR",), "amounts of money"),
        (("5%", "10 %"), "percentages"),
        (("31.12.2035", "2035-01-31 12:00"), "dates"),
        (("05/06/2035",), "dates"),
        (("2082672000", "2082672000000"), "dates"),
        (("01.01.2035 - 31.01.2035", "until 31/12/2035"), "dates"),
        (("worldwide except US", "DE only"), "countries or regions"),
        (("alle außer CH", "nur Österreich"), "countries or regions"),
        (("de-AT", "de_de"), "countries or regions"),
        (("GB-ENG", "🇩🇪"), "countries or regions"),
        (("US", "-", "none", "n/a"), "countries or regions"),
    ],
)
def test_an_unmapped_column_that_may_limit_codes_stops_the_import_until_it_is_mapped_or_ignored(
    stocked: Catalogue, cells: tuple[str, ...], held: str
) -> None:
    rows = "".join(f'lamp;C{at};"{cell}"\n' for at, cell in enumerate(cells))
    text = f"shop;code;Where or when?\n{rows}"
    done = stocked.run(text, *COUPONS)
    assert (done.exit_code, (stocked.made / "coupons.ndjson").exists()) == (1, False)
    assert f"the column 'Where or when?' holds {held} (" in done.stderr
    assert done.stderr.endswith("or leave it out by `--ignore 'Where or when?'`.\n")
    assert len(stocked.records("coupons", text, *COUPONS, "--ignore", "where or when?")) == len(cells)


@pytest.mark.parametrize(
    ("held", "cell", "names"),
    [
        (
            "amounts of money",
            "50",
            (
                "conditions/min_spend|conditions.min_spend.value|Min spend in EUR|MBW in €|cart_minimum|cartMinimum|"
                "Order over|Mindestsumme|montant min|pedido mín.|Minimale bestelling|最低消费|最低注文金額"
            ),
        ),
        ("dates", "12 days", "Expires in|valid|Ablauf|Laufzeit|Deadline|startTime|Scade tra|Geldig|有効期限|有效期"),
        ("countries or regions", "Zone 1", "conditions.countries|Country group|targetRegions|Länderkreis|対象国|国家"),
    ],
)
def test_a_column_named_as_limits_are_stops_the_import_whatever_its_cells_hold(
    stocked: Catalogue, held: str, cell: str, names: str
) -> None:
    for name in names.split("|"):
        done = stocked.run(f"shop;code;{name}\nlamp;A;{cell}\nlamp;B;\nlamp;C;?\n", *COUPONS)
        assert f"the column {name!r} has a name as columns of {held} have ('{cell}' 1" in done.stderr, name
        assert done.exit_code == 1


def test_the_message_of_a_column_that_may_limit_codes_says_what_to_type(stocked: Catalogue) -> None:
    text = "shop,code,Promotion last day\nlamp,A,2020-12-31\n"
    done = stocked.run(text, *COUPONS)
    assert done.stderr == (
        "Nothing was written: the column 'Promotion last day' holds dates ('2020-12-31' 1), and nothing maps it, so"
        " that what it says of where or when coupons count may be lost: name it by `--map 'Promotion last"
        " day=valid_until'` or `--map 'Promotion last day=valid_from'`, or leave it out by `--ignore 'Promotion last"
        " day'`.\n"
    )
    typed = shlex.split(done.stderr.split("`")[1])
    (record,) = stocked.records("coupons", text, *typed)
    assert record["valid_until"] == "2020-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("coupons", "shop,code,Exclusive,Uses,Sort\nlamp,A,no,100,0.5\nlamp,B,yes,5,1.25\nlamp,C,no,7,3\n"),
        (
            "coupons",
            "shop,code,Marketing,Phone,Terms\nlamp,A,x,4915112345,new customers only\nlamp,B,y,49,not 3 for 2\n",
        ),
        ("coupons", "shop,code,min,valid,Market share\nlamp,A,0,yes,-\nlamp,B,none,no,n/a\n"),
        ("offers", "shop,title,Old price,Made in\nlamp,A,5 EUR,DE\n"),
        ("shipping", "shop,ships to,Cost,Since\nlamp,DE,5 EUR,2026-01-01\n"),
    ],
)
def test_columns_that_limit_nothing_are_no_obstacle(stocked: Catalogue, kind: str, text: str) -> None:
    assert stocked.records(kind, text)


def test_a_column_of_countries_next_to_statements_of_shipping_stops_the_import(stocked: Catalogue) -> None:
    done = stocked.run("shop,ships to,But\nlamp,EU,Malta\nbook,EU,keine\n", "--kind", "shipping")
    assert "--map But=excluded" in done.stderr
    assert done.exit_code == 1


def test_an_ignored_column_must_exist(stocked: Catalogue) -> None:
    done = stocked.run("shop,code\nlamp,A\n", *COUPONS, "--ignore", "Regoin")
    assert done.stderr == ("Nothing was written: --ignore 'Regoin' names no column of the file (shop, code).\n")


@pytest.mark.rule("A7")
@pytest.mark.parametrize("header", ["shop,Versandpartner", "shop,checked,source"])
def test_a_sheet_of_which_only_the_shop_is_recognised_replaces_no_statements(stocked: Catalogue, header: str) -> None:
    before = stocked.records("shipping", "shop,ships to\nlamp,DE\n")
    done = stocked.run(f"{header}\nlamp,2026-01-01,policy page\n", "--kind", "shipping")
    assert "no column is recognised as the destinations, nor as another one that says something" in done.stderr
    assert json.loads((stocked.made / "shipping.ndjson").read_text()) == before[0]


@pytest.mark.rule("A7")
def test_a_row_that_states_nothing_is_bad(stocked: Catalogue) -> None:
    text = "shop,ships to,delivery time\nlamp,DE,\nbook,k.A.,-\n"
    done = stocked.run(text, "--kind", "shipping")
    assert done.stderr.startswith("list.csv:3: states nothing: it needs one of destinations, excluded, delivery_time,")
    assert [one["shop_id"] for one in stocked.records("shipping", text, "--skip-invalid")] == ["lamp"]


HEADERS: Final = tomllib.loads(Path(__file__).with_name("headers.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("kind", "fields", "header"),
    [(kind, found["fields"], header) for kind, found in HEADERS.items() for header in found["headers"]],
)
def test_the_columns_of_every_kind_are_recognised_in_ten_languages(kind: str, fields: str, header: str) -> None:
    assert columns_of(header.split("|"), (), kind).positions == {name: at for at, name in enumerate(fields.split())}


def test_what_all_rows_have_is_stated_once(stocked: Catalogue) -> None:
    text = "post_title,coupon_amount,source\nBRIGHT10,5,\nDIM,7,blog\n"
    options = ("post_title=code", "coupon_amount=discount")
    stated = ("shop_id=www.lamp.example", "discount_kind=fixed cart", "currency=EUR", "source=shop export")
    found = stocked.records(
        "coupons", text, *(word for one in options for word in ("--map", one)),
        *(word for one in stated for word in ("--set", one)),
    )  # fmt: skip
    assert [(one["shop_id"], one["discount"]["currency"], one["source"]) for one in found] == [
        ("lamp", "EUR", "shop export"), ("lamp", "EUR", "blog"),
    ]  # fmt: skip
    printed = stocked.run(text, *COUPONS, "--map", "post_title=code", "--set", stated[0], "--set", stated[3]).stdout
    assert "  shop_id              'www.lamp.example'\n" in printed
    assert "  source               column 'source', else 'shop export'\n" in printed


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("shop=lamp", "--set 'shop=lamp' is wrong: it must be FIELD=VALUE, with a field (id, shop_id, code,"),
        ("countries", "--set 'countries' is wrong: it must be FIELD=VALUE"),
        ("countries=Atlantis", "--set countries=Atlantis: it must be codes (ISO 3166-1 alpha-2) or names of countries"),
        ("valid_until=soon", "--set valid_until=soon: it must be a date such as 2026-12-31"),
        ("shop_id=none.example", "--set shop_id=none.example: it is no id and no domain of a shop of the catalogue"),
        ("visibility=shown", "--set visibility=shown: it is none that is known"),
    ],
)
def test_a_constant_that_cannot_be_read_is_refused_once(stocked: Catalogue, pair: str, message: str) -> None:
    done = stocked.run("shop,code\nlamp,A\nlamp,B\n", *COUPONS, "--set", pair)
    assert (done.exit_code, done.stderr.startswith(f"Nothing was written: {message}"), done.stderr.count("\n")) == (
        1, True, 1,
    )  # fmt: skip


@pytest.mark.rule("V1")
def test_a_constant_visibility_hides_shops_and_publishes_none_that_was_hidden(stocked: Catalogue) -> None:
    sheet = "id,name,url,category{}\nlamp,Lamp,lamp.example,X{}\nbook,Book,book.example,X{}\n"
    stocked.shops(sheet.format(",visibility", ",under_review", ",public"))
    bare = sheet.format("", "", "")
    for said, shown in (("public", ["under_review", "public"]), ("under_review", ["under_review"] * 2)):
        done = stocked.run(bare, "--set", f"visibility={said}")
        assert done.exit_code == 0, done.stderr
        lines = (stocked.made / "shops.ndjson").read_text().splitlines()
        assert [json.loads(line)["visibility"] for line in lines] == shown
    blank = sheet.format(",visibility", ",", ",public")
    stocked.run(blank, "--set", "visibility=removed")
    lines = (stocked.made / "shops.ndjson").read_text().splitlines()
    assert [json.loads(line)["visibility"] for line in lines] == ["removed", "public"]


def test_coupons_may_name_their_shops_by_whole_unique_names(stocked: Catalogue) -> None:
    stocked.shops("id,name,url,category\na,Twin,a.example,X\nb,Twin,b.example,X\nc,Lamp House,c.example,X\n")
    text = "Advertiser,code\nLamp House,A\nTwin,B\nLamp,C\nb.example,D\n"
    refused = stocked.run(text, *COUPONS)
    assert (
        "list.csv:2: shop_id is no id and no domain of a shop of the catalogue; --by-name also takes" in refused.stderr
    )
    done = stocked.run(text, *COUPONS, "--by-name", "--skip-invalid")
    assert done.stderr.splitlines() == [
        (
            "list.csv:3: shop_id is no id and no domain of a shop of the catalogue, and not the name of exactly one:"
            " 'Twin' (line 3), 'Lamp' (line 4)"
        )
    ]
    lines = (stocked.made / "coupons.ndjson").read_text().splitlines()
    assert [(record["shop_id"], record["code"]) for record in map(json.loads, lines)] == [("c", "A"), ("b", "D")]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (
            "shops",
            (
                "id,name,url,category,country\nlamp,Lamp,lamp.example,X,DE\nbook,Book,book.example,X,\n"
                "lamp,Lamp,https://www.lamp.example/,Y,AT\nlamp,Lamp,lamp.example,X,CH\n"
            ),
            {"lamp": (["X", "Y"], ["DE", "AT", "CH"]), "book": (["X"], [])},
        ),
        (
            "coupons",
            "shop,code,country\nlamp,A,DE\nlamp.example,B,DE\nlamp,A,AT\nlamp.example,B,\n",
            {"lamp-A": ["DE", "AT"], "lamp-B": ["DE"]},
        ),
        (
            "shipping",
            "shop,country,exhaustive\nlamp,DE,yes\nbook,EU,\nlamp,AT,yes\nbook,CH,no\n",
            {"lamp": ["DE", "AT"], "book": ["EU"]},
        ),
    ],
)
def test_rows_of_one_record_are_joined_where_all_but_their_lists_is_equal(
    stocked: Catalogue, kind: str, text: str, expected: dict[str, Any]
) -> None:
    def lists(record: dict[str, Any]) -> object:
        if kind == "shops":
            return [one["name"] for one in record["categories"]], record["countries"]
        return record["countries" if kind == "coupons" else "destinations"]

    done = stocked.run(text, "--kind", kind, "--skip-invalid")
    assert done.exit_code == 0, done.stderr
    lines = (stocked.made / f"{kind}.ndjson").read_text().splitlines()
    found = {record.get("id") or record["shop_id"]: lists(record) for record in map(json.loads, lines)}
    assert found == expected
    joined = "2 more rows" if kind == "shops" else "1 more row"
    assert f"; {joined} with other entries joined to them; " in done.stdout
    # A code that one row limits and another one does not is bad; so are rows that differ in more than their lists.
    assert done.stderr.count("is already that of another row") == (kind != "shops")


def test_a_row_of_a_list_of_domains_is_named_by_its_host(given: Import) -> None:
    refused = given.run("rank,domain\n1,lamp.example\n", "--category", "Shops")
    way = "--map COLUMN=name --map COLUMN=domain"
    assert f"a list of domains alone takes them as names by {way}." in refused.stderr
    options = ("--map", "domain=name", "--map", "domain=domain", "--category", "Shops")
    (shop,) = given.shops("rank,domain\n1,https://www.lamp.example/de/\n", *options)
    assert (shop["name"], shop["domain"], "popularity" in shop) == ("lamp.example", "lamp.example", False)


MAPPED: Final = (
    "post_title,amount,Where,valid to,state,Added\nA,5,DE,31/12/2035,publish,2026-01-01\nB,7,AT,01/02/2036,draft,\n"
)
OPTIONS: Final = (
    "--map", "post_title=code", "--map", "Where=countries", "--ignore", "Added", "--set", "shop_id=lamp.example",
    "--set", "currency=EUR", "--set", "discount_kind=fixed", "--map-value", "state:publish=public",
    "--map-value", "state:draft=removed", "--dates", "dmy", "--by-name",
)  # fmt: skip


def test_a_saved_mapping_stands_for_all_the_options_of_an_import(stocked: Catalogue) -> None:
    saved = stocked.made.parent / "mapping.toml"
    first = stocked.records("coupons", MAPPED, *OPTIONS, "--save-mapping", str(saved))
    assert tomllib.loads(saved.read_text()) == {
        "coupons": {
            "ignore": ["Added"],
            "dates": "dmy",
            "by_name": True,
            "columns": {
                "code": "post_title", "countries": "Where", "discount": "amount", "valid_until": "valid to",
                "visibility": "state",
            },
            "set": {"shop_id": "lamp.example", "currency": "EUR", "discount_kind": "fixed"},
            "values": {"publish": "public", "draft": "removed"},
        }
    }  # fmt: skip
    again = MAPPED.replace(",Added", ",Note").replace("2026-01-01", "")
    assert stocked.records("coupons", again, "--mapping", str(saved)) == first
    (other,) = stocked.records("coupons", again, "--mapping", str(saved), "--set", "currency=USD")
    assert other["discount"]["currency"] == "USD"
    stocked.records("shipping", "shop,Where\nlamp,DE\n", "--map", "Where=destinations", "--save-mapping", str(saved))
    assert list(tomllib.loads(saved.read_text())) == ["coupons", "shipping"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[shops]\n", "has no table [coupons]: --save-mapping writes one"),
        ("[coupons\n", "is no mapping file (TOML): "),
        ("[coupon]\n", "is no mapping file: 'coupon' is none of shops, coupons"),
        ('[coupons]\ntable = "crm"\n', "coupons.table is not a known field"),
        ('[coupons.columns]\nkode = "c"\n', "'kode' is no field (id, shop_id, code"),
        ('[coupons.columns]\ncode = "voucher no"\n', "--map 'voucher no=code' is wrong"),
    ],
)
def test_a_mapping_file_that_does_not_fit_is_refused(stocked: Catalogue, text: str, message: str) -> None:
    saved = stocked.made.parent / "mapping.toml"
    saved.write_text(text)
    assert message in stocked.refused("shop,code\nlamp,A\n", *COUPONS, "--mapping", str(saved))
    assert not (stocked.made / "coupons.ndjson").exists()


def test_a_mapping_that_cannot_be_saved_is_said_once_the_records_were_written(stocked: Catalogue) -> None:
    done = stocked.run("shop,code\nlamp,A\n", *COUPONS, "--save-mapping", str(stocked.made))
    message = f"The records were written, and their mapping was not: {stocked.made} cannot be read: Is a directory.\n"
    assert (done.exit_code, done.stderr, (stocked.made / "coupons.ndjson").is_file()) == (1, message, True)
