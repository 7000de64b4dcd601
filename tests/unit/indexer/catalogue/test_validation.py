"""`catalogue validate`: everything that is wrong, by file, line, field and value."""

import gzip
import json
import tomllib
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from index_mappings.countries import COUNTRY_CODES
from index_mappings.documents import TRUST_KINDS
from index_mappings.values import ALLOWED_CODE
from indexer.catalogue.new_catalogue import STARTER, write_starter
from indexer.catalogue.validation import validate
from indexer.commands.catalogue import catalogue
from indexer.commands.parts import SAMPLE
from indexer.records.problems import Problem
from indexer.records.related import POLICY_FIELDS, RECORDS
from tests.support.catalogues import (
    coupon,
    offer,
    policy,
    redirect,
    shipping,
    shop,
    trust,
    write_catalogue,
    write_catalogue_directory,
)

CANARY: Final = "zqcanaryzq"
LAMP, BOOK = shop("Lamp", id="lamp"), shop("Book", id="book")


def run(path: Path, *options: str) -> Result:
    return CliRunner().invoke(catalogue, ["validate", str(path), *options])


def as_json(path: Path, *options: str) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(run(path, "--json", *options).stdout)
    return printed


def test_a_good_catalogue_is_counted_by_kind(tmp_path: Path) -> None:
    write_starter(tmp_path / "starter")
    done = run(tmp_path / "starter")
    said = (
        "Nothing is wrong. Valid records: 4 shops, 2 coupons, 2 offers, 2 shipping, 4 policies, 3 trust,"
        " 1 affiliate_programs, 1 redirects, 1 resource_accounts, 2 categories; 3 public shops.\n"
    )
    assert (done.exit_code, done.stdout) == (0, said)


def test_the_sample_and_one_file_of_shops_are_good() -> None:
    whole = as_json(SAMPLE)
    assert (whole["valid"], [note for note in whole["notes"] if "the id of no valid record" in note]) == (True, [])
    single = as_json(SAMPLE / "shops.ndjson")
    assert (single["valid"], single["records"]) == (True, {"shops": 300})


@pytest.mark.rule("V1.shown")
def test_every_problem_of_every_file_is_listed_by_file_line_and_field_with_its_value(tmp_path: Path) -> None:
    bad = [{**LAMP, "id": f"s{number}", "domain": CANARY} for number in range(150)]
    write_catalogue_directory(
        tmp_path, shops=[LAMP, *bad], coupons=[coupon("A", "lamp", verification_status=CANARY)],
        changes=[{"op": "delete", "type": "shops", "key": f"{CANARY} {'x' * 60}", "version": 1}, {"op": 5}],
    )  # fmt: skip
    done = run(tmp_path, "--json")
    printed = json.loads(done.stdout)
    host = "must be a host name with at least two labels"
    status = "must be one of 'verified_applied', 'verified_rejected' or 'unverified'"
    assert done.exit_code == 1
    assert printed.pop("problems") == [
        dict(zip(("file", "line", "field", "reason", "value"), problem, strict=True))
        for problem in (
            *(("shops.ndjson", line, "domain", host, f"'{CANARY}'") for line in range(2, 152)),
            ("coupons.ndjson", 1, "verification_status", status, f"'{CANARY}'"),
            ("changes.ndjson", 1, "key", "must be id as in a record", f"'{CANARY} {'x' * 49}'"),
            ("changes.ndjson", 2, "op", "must be one of 'upsert' or 'delete'", "5"),
            ("changes.ndjson", 2, "type", "is missing", None),
        )
    ]
    assert printed == {
        "valid": False, "bad_records": 153, "records": {"shops": 1, "coupons": 0, "changes": 0}, "public_shops": 1,
        "notes": [],
    }  # fmt: skip
    text = run(tmp_path).stdout.splitlines()
    assert text[0] == f"shops.ndjson:2: domain {host}: '{CANARY}'"
    assert (len(text), text[-1].startswith("154 problems in 153 records.")) == (155, True)


def test_a_key_that_comes_twice_without_versions_is_a_problem_as_in_a_build(tmp_path: Path) -> None:
    write_catalogue_directory(tmp_path, shops=[LAMP, LAMP], offers=[offer("o", "lamp"), offer("o", "lamp")])
    reason = "is already the key of line 1, and no version says which of them is newer"
    assert [(found["file"], found["line"], found["reason"]) for found in as_json(tmp_path)["problems"]] == [
        ("shops.ndjson", 2, reason), ("offers.ndjson", 2, reason),
    ]  # fmt: skip


@pytest.mark.rule("F21")
def test_a_logo_that_would_be_left_out_is_noted_and_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logo = "https://images.internal/lamp.svg"
    path = write_catalogue(tmp_path / "shops.ndjson", [BOOK, {**LAMP, "logo": logo}])
    left_out = (
        "shops.ndjson:2: logo is neither on the shop's domain nor on a host of SHOP_DIRECTORY_LOGO_HOSTS, and would be "
        "left out"
    )
    done = as_json(path)
    assert (done["valid"], done["notes"]) == (True, [left_out])
    monkeypatch.setenv("SHOP_DIRECTORY_LOGO_HOSTS", "other.internal, images.internal")
    assert as_json(path)["notes"] == []


def test_a_public_shop_with_more_than_200_forms_is_noted_and_valid(tmp_path: Path) -> None:
    aliases = [f"{'a' * length}b" for length in range(100, 150)]
    shops = [
        {**LAMP, "aliases": aliases},  # fewer than 60 forms
        shop("Many", id="many", aliases=[f"one {alias} two" for alias in aliases]),
        shop("Hidden", id="hidden", aliases=[f"one {alias} two" for alias in aliases], visibility="under_review"),
    ]
    note = (
        "shops.ndjson:2: name and aliases have 206 forms, by which the shop is found; over 200 make searches slower "
        "and the index larger: leave out aliases that nobody types"
    )
    done = as_json(write_catalogue(tmp_path / "shops.ndjson", shops))
    assert (done["valid"], done["notes"]) == (True, [note])


@pytest.mark.rule("F4")
def test_a_public_shop_whose_codes_need_too_many_terms_is_noted_and_valid(tmp_path: Path) -> None:
    countries = sorted(COUNTRY_CODES)

    def coupons(shop_id: str, number: int) -> list[dict[str, Any]]:
        return [
            coupon(
                f"CODE{n}", shop_id, blocked_countries=countries[n % 2 :: 2],
                valid_from=f"2031-01-01T{n // 2:02}:17:03Z",
                valid_until=f"2031-01-01T{n // 2:02}:48:59Z",
            )
            for n in range(number)
        ]  # fmt: skip

    shops = [BOOK, LAMP, shop("Hidden", id="hidden", visibility="under_review")]
    path = write_catalogue_directory(
        tmp_path, shops=shops, coupons=[*coupons("book", 1), *coupons("lamp", 40), *coupons("hidden", 40)]
    )
    note = (
        "shops.ndjson:2: the shop's coupons have more times and countries than 10,000 terms can state: find_shop "
        "with has_code or verified_code counts some of them for a shorter time, or not; give fewer coupons their own "
        "times, countries and blocked_countries"
    )
    left_out = "coupons.ndjson: 40 records belong to no public shop and would be left out"
    done = as_json(path)
    assert (done["valid"], done["notes"]) == (True, [left_out, note])


def test_notes_name_what_a_build_would_leave_out(tmp_path: Path) -> None:
    hidden = shop("Hidden", id="h", visibility="removed")
    write_catalogue_directory(
        tmp_path,
        shops=[LAMP, {**BOOK, "domain": LAMP["domain"], "popularity": 0.5}, hidden],
        coupons=[coupon("A", "unknown"), coupon("B", "h"), coupon("C", "book")],
        redirects=[redirect("a.example", "b.example")],
    )  # fmt: skip
    done = as_json(tmp_path)
    assert (done["valid"], done["public_shops"]) == (True, 1)
    assert done["notes"] == [
        "coupons.ndjson: 2 records belong to no public shop and would be left out",
        "redirects.ndjson: 1 records belong to no public shop and would be left out",
        "coupons.ndjson:1: shop_id is the id of no valid record of shops.ndjson",
        "shops.ndjson:1: left out, its domain belongs to the shop of line 2",
    ]


def test_notes_name_what_is_valid_and_hardly_meant(tmp_path: Path) -> None:
    write_catalogue_directory(
        tmp_path,
        shops=[LAMP],
        coupons=[
            coupon("A", "lamp", valid_from="2031-05-07", valid_until="2031-05-06"),
            coupon("B", "lamp", valid_from="2031-05-06", valid_until="2031-05-06"),
        ],
        shipping=[shipping("lamp", destinations=[], delivery_time={"min_days": 5, "max_days": 4})],
        policies=[
            policy("lamp", "returns", "AT", countries=["DE"]),
            policy("lamp", "returns", "DE", countries=["DE"]),
            policy("lamp", "returns", countries=["DE"]),
        ],
        trust=[
            trust("lamp", "payment_methods", "card"),
            trust("lamp", "tls_grade", ["A"]),
            trust("lamp", "registrar", "One"),
        ],
        categories=[
            {
                "slug": LAMP["categories"][0]["slug"],
                "names": {"ja": "本"},
                "synonyms": ["PC", "!!", "a b c d e f g", "tv set"],
            }
        ],
    )
    assert as_json(tmp_path)["notes"] == [
        "coupons.ndjson:1: valid_from is after valid_until, so the code is never valid",
        "shipping.ndjson:1: destinations is an empty list, which counts as left out: nothing says where the shop ships",
        "shipping.ndjson:1: delivery_time.min_days is greater than max_days",
        "policies.ndjson:1: countries lacks the country that the record is for",
        "trust.ndjson:1: value of payment_methods is one text, and a list is meant",
        "trust.ndjson:2: value of tls_grade is a list, and one text is meant",
        "categories.ndjson:1: no words find the name or synonym '!!'",
        "categories.ndjson:1: no words find the name or synonym 'a b c d e f g'",
    ]
    many = [coupon(f"C{at}", "lamp", valid_from="2031-05-07", valid_until="2031-05-06") for at in range(23)]
    write_catalogue_directory(tmp_path, shops=[LAMP], coupons=many)
    assert as_json(tmp_path)["notes"][20] == "coupons.ndjson: 3 more records or names like these"


def test_a_catalogue_without_public_shops_is_a_problem_as_in_a_build(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "shops.ndjson", [shop("Hidden", visibility="under_review")])
    reason = "holds no shop that would be public; --allow-empty builds it nevertheless"
    whole = {"file": "shops.ndjson", "line": None, "field": None, "reason": reason, "value": None}
    assert as_json(tmp_path)["problems"] == [whole]


def test_a_damaged_file_is_a_problem_and_the_document_is_whole(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson.gz").write_bytes(gzip.compress(json.dumps(LAMP).encode())[:-4])
    done = as_json(tmp_path)
    (found,) = done["problems"]
    assert (found["line"], "is damaged or truncated" in found["reason"]) == (None, True)
    assert (done["valid"], done["records"]) == (False, {})


def test_changes_may_be_named_and_lenient_passes_over_unknown_fields(tmp_path: Path) -> None:
    shops = write_catalogue(tmp_path / "shops.ndjson", [LAMP])
    change = {"op": "delete", "type": "shops", "key": "lamp", "version": 1, "by": "me"}
    changes = write_catalogue(tmp_path / "today.ndjson", [change])
    assert [found["field"] for found in as_json(shops, "--changes", str(changes))["problems"]] == ["by"]
    assert as_json(shops, "--changes", str(changes), "--lenient")["records"] == {"shops": 1, "changes": 1}
    missing = run(shops, "--changes", str(tmp_path / "none"))
    assert (missing.exit_code, "there is no file of changes at " in missing.stderr) == (1, True)


def test_no_catalogue_at_all_is_exit_code_1(tmp_path: Path) -> None:
    done = run(tmp_path / "nowhere", "--json")
    advice = "give a directory of NDJSON files or one file of shops"
    message = f"Nothing was validated: there is no catalogue at {tmp_path / 'nowhere'}: {advice}."
    assert (done.exit_code, done.stdout) == (1, "")
    assert json.loads(done.stderr) == {"error": {"code": "bad_input", "message": message}}


def test_memory_does_not_grow_with_the_catalogue_or_its_problems(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.ndjson"
        write_catalogue(
            path, (shop(f"S{number}", id=f"s{number}", popularity=-(number % 2)) for number in range(count))
        )
        tracemalloc.start()
        validate(path, lambda _: None)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)  # what is made once is made now
    # The catalogue has four megabytes; threads of other tests may allocate meanwhile.
    assert peak(20_000) < peak(400) + 2_000_000


# Where a value is wrong below its field, and why.
Wrong = tuple[object, str, str]

_TEXT: Final = "must be a string"
_LIST: Final = "must be a list"
_OBJECT: Final = "must be an object"
_ID: Final = "must match ^[A-Za-z0-9_-]{1,64}$"
_HOST: Final = "must be a host name with at least two labels"
_COUNTRIES: Final = "must hold assigned ISO 3166-1 alpha-2 codes (or XK) in capitals"
_COUNTRY: Final = "must be an assigned ISO 3166-1 alpha-2 code (or XK) in capitals"
_DESTINATIONS: Final = "must hold assigned country codes and known groups, such as EU or WORLDWIDE"
_TIME: Final = "must be a date and time as in RFC 3339"
_DATE: Final = "must be a date, or a date and time as in RFC 3339"
_AMOUNT: Final = r"must match ^[0-9]{1,12}(\.[0-9]{1,6})?$"
_CURRENCY: Final = "must be an ISO 4217 currency code in capitals"
_SLUG: Final = "must match ^[a-z0-9-]{1,100}$"
_TAGS: Final = "must have language tags (BCP 47) such as de, pt-BR or zh-Hant as its keys"
_WHOLE: Final = "must be a whole number"
_NUMBER: Final = "must be a number or null"


def _longer(most: int) -> Wrong:
    return "x" * (most + 1), "", f"is longer than {most} characters"


def _each(values: Iterable[object], reason: str, below: str = "") -> list[Wrong]:
    return [(value, below, reason) for value in values]


def _one_of(*values: str) -> list[Wrong]:
    allowed = f"must be one of {', '.join(map(repr, values[:-1]))} or {values[-1]!r}"
    return _each(("zqcanaryzq", values[0][:-1], values[0].upper(), "", 5), allowed)


_CONTROL: Final = "holds a control character"
_TAG: Final = "holds an invisible tag character"
_BIDIRECTIONAL: Final = "holds a bidirectional override or isolate"
_SEPARATOR: Final = "holds a line or paragraph separator"
_UNKNOWN: Final = "is not a known field (--lenient passes over unknown fields)"
_LABEL: Final[list[Wrong]] = [(5, "", _TEXT), _longer(300), ("zqcanaryzq\x07", "", _CONTROL)]
_NAME: Final[list[Wrong]] = [("", "", "must not be blank"), (" ", "", "must not be blank"), *_LABEL]
_OVERRIDES: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_AMOUNTS: Final = ("", "-1", "1,5", "1.", ".5", "1e3", "1.1234567", "1" * 13, "NaN", " 1", "+1", "1\n", "\u0661")
_BAD_TAGS: Final = (
    "", "d", "jp", "gr", "german", "Deutsch", "de_DE", "de-", "-de", "de--DE", "de-DEUTSCHLAND", "pt BR", "d\u0435",
    "x", "de\n", "de-x", f"de-x-{'-'.join(['abcdefgh'] * 4)}", "zqcanaryzq",
)  # fmt: skip
_MONEY: Final[list[Wrong]] = [
    ("5", "", _OBJECT),
    ({"currency": "EUR"}, "amount", "is missing"),
    *_each(({"amount": amount, "currency": "EUR"} for amount in (5, 9.99)), _TEXT, "amount"),
    *_each(({"amount": amount, "currency": "EUR"} for amount in _AMOUNTS), _AMOUNT, "amount"),
    ({"amount": "5"}, "currency", "is missing"),
    *_each(({"amount": "5", "currency": currency} for currency in ("eur", "euro", "EURO")), _CURRENCY, "currency"),
]
WRONG: Final[dict[str, list[Wrong]]] = {
    "id": [*_each(("", "zq canary zq", "x" * 65, "a/b", "zqcanaryzq.x", "c\n"), _ID), *_each((5, None), _TEXT)],
    "name": _NAME,
    "name of a shop": [
        *_NAME,
        (" \u200d ", "", "must not be blank"),
        (["zqcanaryzq"], "", _TEXT),
        *_each((f"zqcanaryzq{char}" for char in "\n\x7f\x85"), _CONTROL),
        *_each((f"zqcanaryzq{char}" for char in _OVERRIDES), _BIDIRECTIONAL),
        *_each((f"zqcanaryzq{char}" for char in "\u2028\u2029"), _SEPARATOR),
        *_each((f"zqcanaryzq{char}" for char in "\U000e0000\U000e0001\U000e0041\U000e007f"), _TAG),
    ],
    "label": _LABEL,
    "source": [
        (5, "", _TEXT), _longer(2_048), ("zqcanaryzq\x00", "", _CONTROL), ("zqcanaryzq\u2028", "", _SEPARATOR),
    ],
    "needed source": [("", "", "must not be empty"), (5, "", _TEXT), _longer(2_048), ("zqcanaryzq\x00", "", _CONTROL)],
    "host": [
        *_each(
            ("localhost", "zqcanaryzq", "192.0.2.1", "192.0.2.0x4d", "[2001:db8::77]", "https://[2001:db8::77]:443/",
             "zqcanaryzq x.internal", "zqcanaryzq☃.internal", f"{'a' * 64}.internal",
             ".".join(["a" * 63] * 3 + ["b" * 62])),
            _HOST,
        ),
        (5, "", _TEXT), _longer(2_048),
        ("zqcanaryzq.internal/".ljust(2_049, "x"), "", "is longer than 2048 characters"),
    ],
    "hosts": [
        ("a.example", "", _LIST), ([5], "0", _TEXT), (["a.example"] * 51, "", "has more than 50 entries"),
        *_each((["a.example", host] for host in ("zqcanaryzq", "192.0.2.77")), _HOST, "1"),
    ],
    "categories": [
        ([], "", "needs at least 1 entry"),
        ("lighting", "", _LIST),
        (["lighting"], "0", _OBJECT),
        ([{"slug": "a", "name": "A"}] * 21, "", "has more than 20 entries"),
        *_each(([{"slug": slug, "name": "A"}] for slug in ("Zq Canary", "ZQCANARYZQ")), _SLUG, "0.slug"),
        ([{"slug": "a"}], "0.name", "is missing"),
        ([{"slug": "a", "name": "A" * 301}], "0.name", "is longer than 300 characters"),
        ([{"slug": "a", "name": "A", "parent": "zqcanaryzq"}], "0.parent", _UNKNOWN),
    ],
    "slug": [*_each(("Zq Canary", "Books", "", "a" * 101), _SLUG), (5, "", _TEXT)],
    "names": [
        *_each(("Leuchten", ["Leuchten"]), _OBJECT),
        *_each(({"de": "", tag: ""} for tag in _BAD_TAGS), _TAGS),
        ({"de": ""}, "de", "must not be blank"),
        ({"pt-BR": 5}, "pt-BR", _TEXT),
        ({"de": "n" * 301}, "de", "is longer than 300 characters"),
        ({"de": "zqcanaryzq\u202e"}, "de", _BIDIRECTIONAL),
        ({f"de-x-{number}": "B" for number in range(101)}, "", "has more than 100 entries"),
    ],
    "countries": [
        *_each(("DE", None), _LIST), ([5], "0", _TEXT),
        *_each((["de"], ["UK"], ["DE", "UK"], ["XX"], ["zqcanaryzq"]), _COUNTRIES),
        (["WORLDWIDE", "DE"], "", "must be WORLDWIDE alone, or country codes"),
    ],
    "blocked": [("DE", "", _LIST), *_each((["WORLDWIDE"], ["de"]), _COUNTRIES), ([None], "0", _TEXT)],
    "destinations": [("EU", "", _LIST), (["EUROPE"], "", _DESTINATIONS), (["eu"], "", _DESTINATIONS)],
    "country": _each(("", "de", "UK", "DEU", "EU", "WORLDWIDE", "zqcanaryzq"), _COUNTRY),
    "policy": _one_of(*POLICY_FIELDS),
    "category of returns": _one_of("finite", "unlimited", "not_permitted"),
    "days": [(-1, "", "must be at least 0"), (1_001, "", "must be at most 1000"), *_each((1.5, "30", True), _WHOLE)],
    "start": _one_of("delivered", "ordered"),
    "fees": _one_of("free", "paid", "unknown"),
    "number": [*_each(("1", True), _NUMBER), *_each((-1, -77.123), "must be at least 0")],
    "aliases": [
        ("zqcanaryzq", "", _LIST), (["a"] * 51, "", "has more than 50 entries"), ([""], "0", "must not be blank"),
        (["zqcanaryzq\x00"], "0", _CONTROL), (["b", "zqcanaryzq\U000e0041"], "1", _TAG),
        (["b", "a" * 301], "1", "is longer than 300 characters"),
    ],
    "synonyms": [
        ("zqcanaryzq", "", "must be a list of strings, or an object of such lists by language tag"),
        (["a"] * 51, "", "has more than 50 entries"), ([""], "0", "must not be blank"),
        (["zqcanaryzq\x00"], "0", _CONTROL), ({"de": ["b", "a" * 301]}, "de.1", "is longer than 300 characters"),
        ({"zq canary": ["a"]}, "", _TAGS),
    ],
    "visibility": [
        *_one_of("public", "under_review", "removed"),
        (None, "", "must be one of 'public', 'under_review' or 'removed'"),
    ],
    "code": [
        *_each(
            ("", "a" * 65, "zq canary zq", "A\n", "<b>", "a=b", "a,b", "A\ufe0f", "😀"), f"must be {ALLOWED_CODE}"
        ),
        (5, "", _TEXT),
    ],
    "discount": [
        ("10%", "", _OBJECT),
        ({"value": "10"}, "kind", "is missing"),
        ({"kind": "half"}, "kind", "must be one of 'percent', 'amount', 'free_shipping' or 'other'"),
        ({"kind": "percent"}, "value", "must be given where kind is percent"),
        *_each(
            ({"kind": "percent", "value": value} for value in ("101", "100.01")),
            "must be at most 100 where kind is percent",
            "value",
        ),
        ({"kind": "amount", "value": "5"}, "currency", "must be given where kind is amount"),
        ({"kind": "amount", "currency": "EUR"}, "value", "must be given where kind is amount"),
        ({"kind": "other", "value": "-1"}, "value", _AMOUNT),
    ],
    "money": _MONEY,
    "time": _each(
        ("2026-10-01", "soon", 5, "2026-10-01T09:30:00", "2031-02-30T07:08:09Z", "0001-01-01T00:00:00+14:00"), _TIME
    ),
    "date or time": _each(("2026-02-30", "2031-02-29", "", "soon", 5, "2031-05-06T07:08:09", "2031-05-06\n"), _DATE),
    "verification": _one_of("verified_applied", "verified_rejected", "unverified"),
    "channels": [("rest", "", _LIST), (["ftp"], "0", "must be one of 'rest', 'mcp' or 'stdio'")],
    "url": [(5, "", _TEXT), _longer(2_048), ("https://zqcanaryzq\x00", "", _CONTROL)],
    "logo": [
        (5, "", _TEXT), _longer(300),
        *_each(
            ("", "zqcanaryzq", "http://zqcanaryzq.internal/", "//zqcanaryzq.internal/", "https://[::1]/zqcanaryzq",
             "https://zqcanaryzq@a.internal/", "https://a.internal:8443/zqcanaryzq", "data:image/svg+xml,zqcanaryzq",
             "javascript:zqcanaryzq", "https://a.internal/zqcanaryzq\n"),
            "must be an https URL to a named host, without credentials or a port",
        ),
        (f"https://zqcanaryzq.internal/{'ä' * 100}", "", "is longer than 300 characters as browsers write it"),
    ],
    "availability": _one_of("in_stock", "out_of_stock", "preorder", "discontinued"),
    "switch": _each(("true", 1), "must be true, false or null"),
    "delivery": [
        ("2 days", "", _OBJECT),
        ({"min_days": -1}, "min_days", "must be at least 0"),
        ({"max_days": 1_001}, "max_days", "must be at most 1000"),
        ({"min_days": 1.5}, "min_days", _WHOLE),
        ({"as_stated": 5}, "as_stated", _TEXT),
        ({"as_stated": "d" * 301}, "as_stated", "is longer than 300 characters"),
    ],
    "where read": _one_of("policy_page", "structured_data"),
    "kind": _one_of(*TRUST_KINDS),
    "value": [
        (5, "", "must be a string, a list of strings, or null"),
        (["a", 5], "1", _TEXT),
        _longer(300),
        (["a"] * 51, "", "has more than 50 entries"),
    ],
    "template": _each((5, None), _TEXT),
    "network hosts": [([], "", "needs at least 1 entry"), (["localhost"], "0", _HOST), ("a.example", "", _LIST)],
    "version": [
        (-1, "", "must be at least 0"), (2**63, "", "must be at most 9223372036854775807"),
        *_each((1.5, "1", True), _WHOLE),
    ],
}  # fmt: skip
_COMMON: Final = {"version": "version", "updated_at": "time"}
FORMS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("field_forms.toml").read_text(encoding="utf-8")
)


def _first(kind: str) -> dict[str, Any]:
    line = (STARTER / f"{kind}.ndjson").read_text(encoding="utf-8").splitlines()[0]
    record: dict[str, Any] = json.loads(line)
    return {field: value for field, value in record.items() if field not in _COMMON}


def _cases(kind: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Wrong records of a kind, each with the field and the reason that is reported."""
    right = _first(kind)
    for field, form in {**FORMS[kind], **_COMMON}.items():
        for value, below, reason in WRONG[form]:
            yield {**right, field: value}, f"{field}.{below}" if below else field, reason
    for field, info in RECORDS[kind].model_fields.items():
        if info.is_required():
            yield {name: value for name, value in right.items() if name != field}, field, "is missing"
    yield {**right, "colour": "red"}, "colour", _UNKNOWN


def _problems(folder: Path, kind: str, records: Iterable[dict[str, Any]]) -> list[Problem]:
    """What is wrong with the starter catalogue when records replace its own ones of a kind, the first of its shops."""
    for file in STARTER.glob("*.ndjson"):
        (folder / file.name).write_bytes(file.read_bytes())
    others = (STARTER / "shops.ndjson").read_text(encoding="utf-8").splitlines()[1:] if kind == "shops" else []
    lines = ["", *map(json.dumps, records), *others]
    (folder / f"{kind}.ndjson").write_text("\n".join(lines), encoding="utf-8")
    found: list[Problem] = []
    validate(folder, lambda problem: found.append(replace(problem, value=None)))
    return found


def test_the_table_has_every_field_of_every_record_and_at_least_500_wrong_values() -> None:
    assert {kind: {*fields, *_COMMON} for kind, fields in FORMS.items()} == {
        kind: set(model.model_fields) for kind, model in RECORDS.items()
    }
    assert sum(len(list(_cases(kind))) for kind in FORMS) >= 500


@pytest.mark.rule("F12")
@pytest.mark.parametrize("kind", FORMS)
def test_a_wrong_record_is_reported_by_file_line_and_field_with_what_is_allowed(tmp_path: Path, kind: str) -> None:
    records, fields, reasons = zip(*_cases(kind), strict=True)
    assert _problems(tmp_path, kind, records) == [
        Problem(f"{kind}.ndjson", line, *found) for line, found in enumerate(zip(fields, reasons, strict=True), start=2)
    ]
