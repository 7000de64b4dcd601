"""Cells of real sheets: dates of either order, amounts of all currencies, blanks in words, policies in any language."""

from typing import Any, Final

import pytest

from indexer.catalogue.sheets import cells
from indexer.catalogue.sheets.dates import date_or_time
from indexer.records.faults import UnreadableError
from tests.unit.indexer.catalogue.imports import Catalogue

COUPONS: Final = ("--kind", "coupons")


def ends(stocked: Catalogue, dates: list[str], *options: str) -> list[str]:
    rows = "".join(f"lamp;C{at};{text}\n" for at, text in enumerate(dates))
    found = stocked.records("coupons", f"shop;code;ends\n{rows}", *options)
    return [record["valid_until"].removesuffix("T23:59:59Z") for record in found]


@pytest.mark.parametrize(
    ("dates", "expected", "note"),
    [
        (
            ["03/04/2035", "25/12/2035", "31/01/2035"],
            ["2035-04-03", "2035-12-25", "2035-01-31"],
            "Dates of 'ends' are read day first (dmy), as '25/12/2035' shows",
        ),
        (
            ["03/04/2035", "12/25/2035", "2035-01-31"],
            ["2035-03-04", "2035-12-25", "2035-01-31"],
            "Dates of 'ends' are read month first (mdy), as '12/25/2035' shows",
        ),
        (["03-04-35", "31-12-35", "02-13-35"], [], ""),
        (
            ["35-04-03", "35-12-31", "36-02-13"],
            ["2035-04-03", "2035-12-31", "2036-02-13"],
            "Dates of 'ends' are read year first (ymd), as '35-04-03' shows",
        ),
        (["03/03/2035", "31.12.35", "31 Dec 2035"], ["2035-03-03", "2035-12-31", "2035-12-31"], ""),
    ],
)
def test_the_dates_of_a_column_are_read_in_the_one_order_that_all_of_them_fit(
    stocked: Catalogue, dates: list[str], expected: list[str], note: str
) -> None:
    rows = "".join(f"lamp;C{at};{text}\n" for at, text in enumerate(dates))
    done = stocked.run(f"shop;code;ends\n{rows}", *COUPONS)
    if expected:
        assert ends(stocked, dates) == expected
        assert [line for line in done.stdout.splitlines() if line.startswith("Dates of ")] == ([note] if note else [])
    else:
        assert done.exit_code == 1
        assert f"or --dates mdy says which come first: {dates[0]!r}" in done.stderr


def test_the_stated_order_counts_where_the_column_settles_none_and_never_against_it(stocked: Catalogue) -> None:
    unsettled = ["03/04/2035", "05/06/2035"]
    refused = stocked.run("shop;code;ends\nlamp;A;03/04/2035\n", *COUPONS)
    assert "--dates dmy or --dates mdy says which come first: '03/04/2035'" in refused.stderr
    assert ends(stocked, unsettled, "--dates", "dmy") == ["2035-04-03", "2035-06-05"]
    assert ends(stocked, unsettled, "--dates", "mdy") == ["2035-03-04", "2035-05-06"]
    assert ends(stocked, ["03/04/2035", "25/12/2035"], "--dates", "mdy") == ["2035-04-03", "2035-12-25"]
    mixed = stocked.run("shop;code;ends\nlamp;A;25/12/2035\nlamp;B;12/25/2035\n", *COUPONS, "--dates", "dmy")
    assert mixed.stderr.startswith("list.csv:3: valid_until must be a date")


def test_each_column_of_dates_is_read_by_itself(stocked: Catalogue) -> None:
    text = "shop;code;starts;ends\nlamp;A;01/02/2020;12/31/2035\nlamp;B;31/01/2020;01/02/2036\n"
    found = stocked.records("coupons", text)
    assert [(one["valid_from"][:10], one["valid_until"][:10]) for one in found] == [
        ("2020-02-01", "2035-12-31"), ("2020-01-31", "2036-01-02"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("31.12.26", "2026-12-31"),
        ("31-12-2035", "2035-12-31"),
        ("2035-12-31 23:59:59 UTC", "2035-12-31T23:59:59+00:00"),
        ("12/31/2035 11:59 PM", "2035-12-31T23:59:00+00:00"),
        ("31.12.2035 12:00 am", "2035-12-31T00:00:00+00:00"),
        ("31.12.2035, 18:30 Uhr", "2035-12-31T18:30:00+00:00"),
        ("2035-12-31T18:30:00+02:00", "2035-12-31T18:30:00+02:00"),
        ("2035-12-31T18:30:00.250Z", "2035-12-31T18:30:00.250000+00:00"),
        ("2082672000", "2035-12-31T00:00:00+00:00"),
        ("2082672000000", "2035-12-31T00:00:00+00:00"),
        ("20351231", "2035-12-31"),
        ("Dec 31, 2035", "2035-12-31"),
        ("31. Dezember 2035", "2035-12-31"),
        ("31 de diciembre de 2035", "2035-12-31"),
        ("31-Dec-2035", "2035-12-31"),
    ],
)
def test_dates_and_times_are_read_as_exports_write_them(text: str, expected: str) -> None:
    assert date_or_time(text) == expected


@pytest.mark.parametrize(
    "text",
    ["31.13.2035", "2035-02-30", "31.12.2035 24:30", "31.12.2035 13:00 pm", "49674", "12/2035", "soon", "31.12.2035 x"],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        date_or_time(text, "dmy")


@pytest.mark.parametrize(
    ("text", "of_row", "amount", "currency"),
    [
        ("12,345 JPY", None, "12345", "JPY"),
        ("1.500 JPY", None, "1500", "JPY"),
        ("12,345", "KRW", "12345", None),
        ("¥12,345", "JPY", "12345", None),
        ("KWD 12.345", None, "12.345", "KWD"),
        ("₹1,23,456.00", None, "123456.00", "INR"),
        ("1,23,456 INR", None, "123456", "INR"),
        ("1.234,50 €", None, "1234.50", "EUR"),
        ("EUR 1 234,50", None, "1234.50", "EUR"),
        ("CHF 1'234.50", None, "1234.50", "CHF"),
        ("1,234,567 JPY", None, "1234567", "JPY"),
        ("¥12,345 JPY", None, "12345", "JPY"),
        ("US$ 12 USD", None, "12", "USD"),
        ("￥１２，３４５", "JPY", "12345", None),
        ("5000円", None, "5000", "JPY"),
        ("12 Euro", None, "12", "EUR"),
        ("50 TL", None, "50", "TRY"),
        ("12.50 EUR\u200b", None, "12.50", "EUR"),
    ],
)
def test_amounts_are_read_by_the_digits_of_their_currency(
    text: str, of_row: str | None, amount: str, currency: str | None
) -> None:
    assert cells.money(text, of_row) == {"amount": amount, "currency": currency}


@pytest.mark.parametrize("text", ["12,345 EUR", "1.234", "12,345 KWD", "from 12.50 EUR", "-5 EUR", "12.5e2 EUR"])
def test_amounts_that_may_mean_several_are_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        cells.money(text)


def test_an_amount_is_given_no_currency_that_its_symbol_is_not_of(stocked: Catalogue) -> None:
    prices = ["$5", "¥1500", "5 kr", "Rs. 5", "$5 EUR"]
    text = "\n".join(["shop\ttitle\tprice", *(f"lamp\t{at}\t{price}" for at, price in enumerate(prices)), ""])
    done = stocked.run(text, "--kind", "offers", "--currency", "EUR")
    assert "price has a symbol that is not of the currency that is stated (EUR): '$5' (line 2), " in done.stderr
    assert "5 bad rows" in done.stderr
    text = "shop;title;price;currency\nlamp;A;$5;CAD\nlamp;B;5 kr;ISK\nlamp;C;Rs. 5;INR\nlamp;D;¥5;CNY\n"
    said = [one["price"]["currency"] for one in stocked.records("offers", text)]
    assert said == ["CAD", "ISK", "INR", "CNY"]


def test_an_amount_that_may_be_thousands_or_decimals_is_refused_with_what_to_write(stocked: Catalogue) -> None:
    assert stocked.refused("shop;title;price\nlamp;A;¥12,345\n", "--kind", "offers").startswith(
        "list.csv:2: price has three digits behind its one separator, which may be of thousands or of decimals: write"
        " it without one or with two decimals, or state a currency that has no cents, such as by --currency JPY: "
        "'¥12,345'"
    )


@pytest.mark.parametrize(
    ("text", "discount"),
    [
        ("5€ Rabatt", {"kind": "amount", "value": "5", "currency": "EUR"}),
        ("5 € off", {"kind": "amount", "value": "5", "currency": "EUR"}),
        ("20 % off", {"kind": "percent", "value": "20"}),
        ("£5 off", {"kind": "amount", "value": "5", "currency": "GBP"}),
        ("-5 €", {"kind": "amount", "value": "5", "currency": "EUR"}),
        ("5 euros de réduction", {"kind": "amount", "value": "5", "currency": "EUR"}),
        ("Save 10%", {"kind": "percent", "value": "10"}),
        ("10 % de réduction", {"kind": "percent", "value": "10"}),
        ("15％", {"kind": "percent", "value": "15"}),
    ],
)
def test_discounts_are_read_with_the_words_around_them(text: str, discount: dict[str, str]) -> None:
    assert cells.discount(text) == discount


@pytest.mark.parametrize(
    "text", ["€5 off €50", "10 % ab 50 €", "up to 50%", "10% off shoes", "5 off", "20 % max. 30 €"]
)
def test_discounts_with_conditions_are_refused(text: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        cells.discount(text)
    assert refused.value.values == (text,)


def test_the_currency_of_a_row_settles_its_amounts(stocked: Catalogue) -> None:
    text = "shop;title;price;currency\nlamp;A;12,345;JPY\nlamp;B;12.345;KWD\nlamp;C;12,345;EUR\n"
    found = stocked.records("offers", text, "--skip-invalid")
    assert [one.get("price", {}).get("amount") for one in found] == ["12345", "12.345", None]


@pytest.mark.parametrize("blank", ["n/a", "k.A.", "-", "—", "keine Angabe", "b.d.", "NULL", "unknown", "?"])
def test_cells_that_state_nothing_in_words_are_blank(stocked: Catalogue, blank: str) -> None:
    text = f"shop;code;title;discount;minimum;country;start;expires\nlamp;A;{';'.join([blank] * 6)}\n"
    (record,) = stocked.records("coupons", text)
    assert record == {
        "id": "lamp-A", "shop_id": "lamp", "code": "A", "countries": [], "verification_status": "unverified",
        "blocked_channels": [], "blocked_countries": [],
    }  # fmt: skip
    assert "code is missing" in stocked.run(f"shop;code;title\nlamp;{blank};T\n", *COUPONS).stderr


@pytest.mark.parametrize(
    "end", ["unbegrenzt", "unlimited", "No end", "never", "bis auf Weiteres", "illimité", "süresiz"]
)
def test_a_code_may_have_no_end_in_words(stocked: Catalogue, end: str) -> None:
    (record,) = stocked.records("coupons", f"shop;code;expires\nlamp;A;{end}\n", "--set", "valid_until=2035-12-31")
    assert "valid_until" not in record


def test_lists_are_separated_by_line_breaks(stocked: Catalogue) -> None:
    text = 'name,url,category,country,aliases\nA,a.example,"Home, Garden\nBooks","DE\nAT","One, Two\nThree"\n'
    (shop,) = stocked.shops(text)
    assert [one["name"] for one in shop["categories"]] == ["Home, Garden", "Books"]
    assert (shop["countries"], shop["aliases"]) == (["DE", "AT"], ["One, Two", "Three"])


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("EU + CH", ["EU", "CH"]),
        ("EU & Norwegen", ["EU", "NO"]),
        ("Deutschland und Österreich", ["DE", "AT"]),
        ("Bosnia and Herzegovina", ["BA"]),
        ("Trinidad & Tobago, Malta", ["TT", "MT"]),
        ("DACH", ["DACH"]),
        ("alle Länder", ["WORLDWIDE"]),
        ("🇩🇪, 🇦🇹", ["DE", "AT"]),
    ],
)
def test_countries_and_groups_are_read_as_people_list_them(text: str, codes: list[str]) -> None:
    assert cells.destinations(text) == codes


def test_a_region_without_one_list_of_countries_is_refused_with_what_to_write(stocked: Catalogue) -> None:
    assert stocked.refused("shop;ships to\nlamp;Europa\n", "--kind", "shipping").startswith(
        "list.csv:2: destinations must be codes or names of countries, or groups such as EU or WORLDWIDE; a region such"
        " as Europe has no one list of countries: write a group (EU, EEA, DACH) or them: 'Europa'\n"
    )


@pytest.mark.parametrize("text", ["worldwide except US", "EU ohne DE", "nur Österreich", "mondial sauf FR"])
def test_places_with_exceptions_are_refused_with_what_to_write(stocked: Catalogue, text: str) -> None:
    done = stocked.run(f"shop;code;Regions\nlamp;A;{text}\nlamp;B;DE\n", *COUPONS)
    assert "of countries alone; exceptions need a column such as Excluded Countries: " in done.stderr
    (record,) = stocked.records("coupons", f"shop;code;Regions\nlamp;A;{text}\nlamp;B;DE\n", "--skip-invalid")
    assert record["code"] == "B"


@pytest.mark.parametrize("text", ["Gratis Versand", "Free shipping", "envío gratis", "Fri frakt", "Darmowa dostawa"])
def test_free_shipping_is_a_discount_in_any_language(stocked: Catalogue, text: str) -> None:
    (record,) = stocked.records("coupons", f"shop;code;discount\nlamp;A;{text}\n")
    assert record["discount"] == {"kind": "free_shipping"}


def test_nothing_off_is_free_shipping_where_a_column_says_so_and_else_no_discount(stocked: Catalogue) -> None:
    text = (
        "shop,code,discount_type,amount,free_shipping\nlamp,A,fixed_cart,0,yes\nlamp,B,percent,,yes\n"
        "lamp,C,fixed_cart,5.00,yes\nlamp,D,fixed_cart,0,no\nlamp,E,percent,10,no\nlamp,F,fixed_product,2.00,no\n"
    )
    assert stocked.refused(text, *COUPONS, "--currency", "EUR").splitlines()[:2] == [
        (
            "list.csv:5: discount is nothing off: leave the cell blank, or write what the code gives, such as free"
            " shipping: '0'"
        ),
        (
            "list.csv:7: discount is the kind of a number, and none of percent, amount, free_shipping and other: write"
            " one of these in the column of kinds; it is other where the code is for single products: 'fixed_product'"
        ),
    ]
    found = stocked.records("coupons", text, "--currency", "EUR", "--skip-invalid")
    assert [one.get("discount") for one in found] == [
        {"kind": "free_shipping"}, {"kind": "free_shipping"}, {"kind": "amount", "value": "5.00", "currency": "EUR"},
        None, {"kind": "percent", "value": "10"}, None,
    ]  # fmt: skip


CHECKED: Final = ("--set", "source=https://lamp.example/terms", "--set", "checked_at=2026-10-01")


def policies(stocked: Catalogue, text: str, *options: str) -> list[dict[str, Any]]:
    found = stocked.records("policies", text, *CHECKED, *options)
    assert all(one.pop("source") and one.pop("checked_at") for one in found)
    return [{name: said for name, said in one.items() if said != []} for one in found]


def test_policies_may_have_a_column_for_each_kind(stocked: Catalogue) -> None:
    text = (
        "Shop;Rückgabe;Zahlungsarten;Käuferschutz\n"
        "lamp;30 Tage Rückgaberecht;PayPal, Visa;Trusted Shops bis 2.500 €\n"
        "book;unbegrenzt;Rechnung;keiner\n"
    )
    assert policies(stocked, text) == [
        {
            "shop_id": "lamp", "kind": "returns", "category": "finite", "days": 30,
            "as_stated": "30 Tage Rückgaberecht",
        },
        {"shop_id": "lamp", "kind": "payment_methods", "methods": ["PayPal", "Visa"]},
        {"shop_id": "lamp", "kind": "buyer_protection", "as_stated": "Trusted Shops bis 2.500 €"},
        {"shop_id": "book", "kind": "returns", "category": "unlimited"},
        {"shop_id": "book", "kind": "payment_methods", "methods": ["Rechnung"]},
    ]  # fmt: skip


def test_policies_may_have_a_row_for_each_kind_in_words_of_the_operator(stocked: Catalogue) -> None:
    text = (
        "Shop;Art;Land;Rückgabefrist;Rücksendekosten;Methoden;Wortlaut;Gerechnet ab\n"
        "lamp;Rückgabe;Deutschland;14 Tage;kostenlos;per Post|in der Filiale;;Lieferung\n"
        "lamp;Zahlungsarten;;;;PayPal|Rechnung;;\nlamp;Käuferschutz;;;;;Trusted Shops;\n"
    )
    assert policies(stocked, text) == [
        {
            "shop_id": "lamp", "kind": "returns", "country": "DE", "category": "finite", "days": 14,
            "counted_from": "delivered", "fees": "free", "methods": ["by_mail", "in_store"],
        },
        {"shop_id": "lamp", "kind": "payment_methods", "methods": ["PayPal", "Rechnung"]},
        {"shop_id": "lamp", "kind": "buyer_protection", "as_stated": "Trusted Shops"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("30", {"category": "finite", "days": 30}),
        ("2 weeks", {"category": "finite", "days": 14, "as_stated": "2 weeks"}),
        ("1 mois", {"category": "finite", "as_stated": "1 mois"}),
        ("14-30 days", {"category": "finite", "as_stated": "14-30 days"}),
        ("no returns", {"category": "not_permitted"}),
        ("keine", {"category": "not_permitted"}),
        ("14 Werktage", {"category": "finite", "as_stated": "14 Werktage"}),
    ],
)
def test_returns_are_read_as_a_period_or_none(stocked: Catalogue, cell: str, said: dict[str, Any]) -> None:
    assert policies(stocked, f"shop;returns\nlamp;{cell}\n") == [{"shop_id": "lamp", "kind": "returns", **said}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "shop;returns\nlamp;on request\n",
            "returns must be such as 30 days, unlimited or not permitted: 'on request'",
        ),
        ("shop;buyer protection\nlamp;yes\n", "as_stated must be given where kind is buyer_protection"),
        ("shop;returns;payment methods\nlamp;;\n", "kind is missing"),
        ("shop;kind;days\nlamp;;30\n", "kind is missing"),
        ("shop;days\nlamp;a month\n", "days must be a whole number of days: 'a month'"),
    ],
)
def test_a_policy_that_says_nothing_clear_is_bad(stocked: Catalogue, text: str, message: str) -> None:
    done = stocked.run(text, "--kind", "policies", *CHECKED)
    assert (done.exit_code, done.stderr.startswith(f"list.csv:2: {message}")) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("text", "said"), [("auf Lager", "in_stock"), ("Épuisé", "out_of_stock"), ("In stock", "in_stock")]
)
def test_availabilities_are_read_in_the_language_of_the_operator(stocked: Catalogue, text: str, said: str) -> None:
    (offer,) = stocked.records("offers", f"shop;title;Verfügbarkeit\nlamp;A;{text}\n")
    assert offer["availability"] == said
